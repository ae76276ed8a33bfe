"""More seeded programs: whole scripts by somebody who had read the pages of docs/guide/causes, and nothing of how causes are
found. They tell whether what a reader takes for a cause is what the answer names.
"""
from seeds import (COPIES, EXCEPTION, EXPANDABLE, GRADIENTS, GRAPH, HOOKS, IS_FULL, IS_HOLES, IS_LEAK, LONG, OUTPUTS, PINS,
                   SAVED, SCORES, Seed)

EVAL_OUTPUTS = ('eval_accumulates', 'outputs_kept')

SICK = [
    Seed('dcgan_average', '8GiB', GRAPH, True, IS_LEAK),
    Seed('latent_diffusion', '6GiB', GRADIENTS, True, IS_FULL),
    Seed('char_rnn_stream', '6GiB', GRAPH, True, IS_LEAK),
    Seed('retry_decorator', '8GiB', EXCEPTION, True),
    Seed('alibi_documents', '6GiB', ('outputs_kept', 'growing_sizes') + LONG, True, IS_LEAK),
    Seed('grad_cam_probe', '6GiB', HOOKS + ('outputs_kept',), True, IS_LEAK),
    Seed('early_stopping', '8GiB', COPIES + ('outputs_kept',), True, IS_LEAK),
    Seed('resume_onto_device', '2GiB', ('loaded_twice',) + COPIES, True, IS_FULL),
    Seed('long_vocabulary', '12GiB', ('logits_spike',) + SAVED, True, IS_FULL),
    Seed('point_transformer', '10GiB', SCORES + SAVED, True),  # a hole would have served this request, and no later one
    Seed('gradual_unfreezing', '4GiB', ('optimizer_state', 'outputs_kept'), True, IS_LEAK),
    Seed('accumulated_vit', '8GiB', GRAPH + SAVED, True, IS_LEAK),
    Seed('image_logger', '6GiB', OUTPUTS, True, IS_LEAK),
    Seed('cls_vectors', '6GiB', EVAL_OUTPUTS, True, IS_LEAK),
    Seed('slide_prototypes', '4GiB', PINS + ('cache_between_phases',), True, IS_HOLES),
    Seed('tree_search', '6GiB', ('reference_cycle',), True, IS_LEAK),
    Seed('retrieval_bank', '4GiB', LONG, True, IS_FULL),
    Seed('segment_metric', '6GiB', EVAL_OUTPUTS, True, IS_LEAK),
]

# By another reader: their bytes are not noted.
SICK_TOO = [
    Seed('variant_effect', '4GiB', ('outputs_kept', 'eval_accumulates'), True, has_bytes=False),
    Seed('anime_gan', '4GiB', ('graph_kept_alive',), True, has_bytes=False),
    Seed('cityseg', '4GiB', ('eval_accumulates', 'outputs_kept'), True, has_bytes=False),
    Seed('phoneme_frames', '4GiB', ('eval_without_no_grad', 'graph_kept_alive'), True, has_bytes=False),
    Seed('fit_batch', '6GiB', ('exception_holds_frames',), True, has_bytes=False),
    Seed('style_adapter', '4.5GiB', ('gradients_kept',), True, has_bytes=False),
    Seed('dictionary_probe', '4GiB', ('hooks_keep_activations', 'outputs_kept'), True, has_bytes=False),
    Seed('dialogue_sim', '3GiB', ('kv_cache_grows',), True, has_bytes=False),
    Seed('serve_half', '2GiB', ('loaded_twice',), True, has_bytes=False),
    Seed('multvae', '5GiB', ('long_lived_tensor',), True, has_bytes=False),
    Seed('tabular_folds', '3GiB', ('model_copies', 'outputs_kept'), True, has_bytes=False),
    Seed('progressive_unet', '2GiB', ('optimizer_state',), True, has_bytes=False),
    Seed('pixel_dqn', '4GiB', ('outputs_kept', 'long_lived_tensor'), True, has_bytes=False),
    Seed('latent_search', '4GiB', ('reference_cycle',), True, has_bytes=False),
    Seed('selfdistill', '4GiB', ('graph_kept_alive',), True, has_bytes=False),
    Seed('clip_index', '4GiB', ('outputs_kept', 'eval_accumulates'), True, has_bytes=False),
    Seed('finetune_lm', '4GiB', ('eval_accumulates',), True, has_bytes=False),
    Seed('audio_codec', '2GiB', ('reference_cycle', 'graph_kept_alive'), True, has_bytes=False),
    Seed('rerank', '4GiB', ('logits_spike',), True, has_bytes=False),
    Seed('clinical_notes', '5GiB', ('attention_scores', 'activations_saved'), True, has_bytes=False),
    Seed('organ_ct', '8GiB', ('activations_saved', 'capacity'), True, has_bytes=False),
    Seed('summarise', '12GiB', ('capacity',), True, has_bytes=False),
    Seed('bert_from_scratch', '6GiB', ('optimizer_state', 'capacity'), True, has_bytes=False),
    Seed('spike_forecaster', '4.5GiB', ('optimizer_temporaries', 'optimizer_state'), True, has_bytes=False),
    Seed('ddim_gallery', '2GiB', ('outputs_kept', 'eval_accumulates', 'pinned_segment'), True, has_bytes=False),
    Seed('simclr_audio', '3GiB', ('outputs_kept',), True, has_bytes=False),
    Seed('graph_server', '4GiB', ('private_pools',), True, has_bytes=False),
    Seed('lab_weather', '6GiB', ('memory_fraction',), True, has_bytes=False),
    Seed('attribution_map', '4GiB', ('outputs_kept',), True, has_bytes=False),
    Seed('swa_trainer', '2GiB', ('model_copies', 'outputs_kept'), True, has_bytes=False),
    Seed('fewshot_maml', '4GiB', ('graph_kept_alive',), True, has_bytes=False),
]

# By a third.
SICK_LATER = [
    Seed('load_forecast', '6GiB', GRAPH, True, has_bytes=False),
    Seed('dcgan', '8GiB', GRAPH, True, has_bytes=False),
    Seed('ner_finetune', '5GiB', EVAL_OUTPUTS, True, has_bytes=False),
    Seed('road_segmentation', '4GiB', EVAL_OUTPUTS, True, has_bytes=False),
    Seed('simclr_probe', '6GiB', ('eval_without_no_grad', 'graph_kept_alive'), True, has_bytes=False),
    Seed('caption_service', '7GiB', EXCEPTION + ('reference_cycle',), True, has_bytes=False),
    Seed('distill', '5GiB', GRADIENTS, True, has_bytes=False),
    Seed('neuron_atlas', '5GiB', HOOKS + ('outputs_kept',), True, has_bytes=False),
    Seed('streaming_asr', '4GiB', ('kv_cache_grows', 'outputs_kept'), True, has_bytes=False),
    Seed('resume_average', '2.5GiB', ('loaded_twice',) + COPIES, True, has_bytes=False),
    Seed('code_lm', '8GiB', ('logits_spike',), True, has_bytes=False),
    Seed('nerf', '3GiB', LONG, True, has_bytes=False),
    Seed('soup', '2GiB', COPIES + ('outputs_kept',), True, has_bytes=False),
    Seed('credit_folds', '2GiB', ('optimizer_state',) + COPIES, True, has_bytes=False),
    Seed('weather_emulator', '10GiB', ('optimizer_temporaries',), True, has_bytes=False),
    Seed('help_center', '3GiB', ('outputs_kept',), True, has_bytes=False),
    Seed('slide_scanner', '4GiB', OUTPUTS, True, has_bytes=False),
    Seed('ad_ranker', '5GiB', ('private_pools',), True, has_bytes=False),
    Seed('hex_search', '3GiB', ('reference_cycle',), True, has_bytes=False),
    Seed('vessel_tracker', '8GiB', ('memory_fraction',), True, has_bytes=False),
    Seed('protein_encoder', '3GiB', SCORES, True, has_bytes=False),
    Seed('rbf_layers', '2.25GiB', SAVED, True, has_bytes=False),
    Seed('flow_window', '3.6GiB', ('rounding',), True, has_bytes=False),
    Seed('stale_sgd', '2.5GiB', ('optimizer_state', 'outputs_kept'), True, has_bytes=False),
    Seed('offline_llm', '8GiB', ('capacity',), True, has_bytes=False),
    Seed('brain_volumes', '6GiB', SAVED + ('capacity',), True, has_bytes=False),
    Seed('full_finetune', '12GiB', ('optimizer_state', 'capacity', 'optimizer_temporaries'), True, has_bytes=False),
    Seed('ppo_arm', '3GiB', ('outputs_kept',), True, has_bytes=False),
    Seed('keyframes', '5GiB', ('medium_requests', 'pinned_segment', 'not_expandable'), True, has_bytes=False),
]

HEALTHY = [
    Seed('cyclegan_pool', '6GiB'),
    Seed('ppo_rollouts', '6GiB', conf=EXPANDABLE),
    Seed('accumulate_average', '6GiB'),
    Seed('chat_static_cache', '6GiB'),
    Seed('hashgrid_scene', '1.5GiB'),
    Seed('fraud_graph', '3.5GiB', conf=EXPANDABLE),
    Seed('ddpm_tiles', '8GiB', conf=EXPANDABLE),
    Seed('beam_translate', '2.7GiB', conf=EXPANDABLE),
    Seed('lr_sweep', '3.3GiB', conf=EXPANDABLE),
]

PAGE_READERS = SICK + SICK_TOO + SICK_LATER + HEALTHY
