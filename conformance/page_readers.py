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

HEALTHY = [
    Seed('cyclegan_pool', '6GiB'),
    Seed('ppo_rollouts', '6GiB', conf=EXPANDABLE),
    Seed('accumulate_average', '6GiB'),
    Seed('chat_static_cache', '6GiB'),
]

PAGE_READERS = SICK + HEALTHY
