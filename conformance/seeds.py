"""The catalogue of seeded programs: what is run, on how much memory, and what was planted in it.

`causes`: names as `ashlar explain --json` has them, the planted one first, then others that name the same thing; none:
the program is healthy. `verdicts`: likewise, where the kind of failure is planted. `has_bytes`: the program notes the bytes
of its sickness (seeded/note.py), and the answer's are held to them. `variable`: what keeps it, which the answer has to name.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Seed:
    name: str  # file.function, in the folder seeded, or a file that is the program; words may follow where one is used twice
    capacity: str
    causes: tuple = ()
    fails: bool = False  # a request fails
    verdicts: tuple = ()
    has_bytes: bool = True
    given: tuple = ()  # of the function, "name=number"
    conf: str = ''
    flags: tuple = ()
    variable: str = ''  # that keeps the memory, as a path from where it stands: "metric.state['preds']"

    @property
    def program(self):
        """["leaks", "running_total"], or ["dcgan_average"] of a whole file."""
        return self.name.split(' ')[0].split('.')

    @property
    def file(self):
        return self.program[0] + '.py'

    def arguments(self):
        return [*self.program[1:], *self.given]


GRAPH, OUTPUTS, EVAL = ('graph_kept_alive',), ('outputs_kept', 'eval_accumulates'), ('eval_without_no_grad',)
HOOKS, COPIES, LONG = ('hooks_keep_activations',), ('model_copies',), ('long_lived_tensor',)
CACHE, SAVED, SCORES = ('kv_cache_grows',), ('activations_saved',), ('attention_scores',)
EXCEPTION, EMPTIED = ('exception_holds_frames',), ('empty_cache_each_step',)
OUTSIDE, LIMIT, GRADIENTS = ('other_process',), ('memory_fraction',), ('gradients_kept',)
GROWING, PINS = ('growing_sizes', 'not_expandable'), ('pinned_segment', 'not_expandable')
IS_LEAK, IS_OUTSIDE, IS_HOLES = ('leak',), ('outside',), ('fragmentation',)
IS_FULL = ('capacity', 'nearly_full')  # too small a card: a request may fail with a little to spare
AMPLE, EXPANDABLE = '80GiB', 'expandable_segments:True'

LEAKS = [
    Seed('leaks.history_of_losses', '8GiB', GRAPH, True, IS_LEAK),
    Seed('leaks.running_total', AMPLE, GRAPH),
    Seed('leaks.retained_graph', '16GiB', GRAPH, True, IS_LEAK),
    Seed('leaks.gan_losses', '24GiB', GRAPH),
    Seed('leaks.endless_memory', '12GiB', GRAPH, True, IS_LEAK),
    Seed('leaks.log_probabilities', '10GiB', GRAPH, True, IS_LEAK, given=('batch=4096',)),
    Seed('outputs.collected_features', '24GiB', OUTPUTS, given=('batch=256',)),
    Seed('outputs.replay_buffer', '6GiB', OUTPUTS, True, IS_LEAK, given=('batch=1024',)),
    Seed('outputs.remembered_sentences', '40GiB', OUTPUTS, given=('batch=64',)),
    Seed('outputs.predictions', '16GiB', ('eval_accumulates', 'outputs_kept')),
    Seed('outputs.predictions_joined', '4GiB', ('eval_accumulates', 'outputs_kept'), True, IS_LEAK),
    Seed('hooks.watched_with_graph', '24GiB', HOOKS + GRAPH),
    Seed('hooks.watched', '4GiB', HOOKS, True, IS_LEAK),
    Seed('hooks.watched_gradients', '4GiB', HOOKS, True, IS_LEAK),
    Seed('hooks.gradients_of_the_base', '16GiB', GRADIENTS),
    Seed('hooks.gradients_of_the_body', '10GiB', GRADIENTS),
    Seed('generation.grown_cache', '4GiB', CACHE, True, IS_LEAK),
    Seed('generation.chats', '12GiB', CACHE, True, IS_LEAK),
    Seed('generation.with_gradients', '12GiB', EVAL + GRAPH, True),
    Seed('evaluating.inline', '16GiB', EVAL + GRAPH, True),
    Seed('evaluating.in_a_function', '12GiB', EVAL + GRAPH, True),
    Seed('evaluating.larger_batches', '24GiB', EVAL),
]

HOLDERS = [
    Seed('copies.averaged', '24GiB', COPIES),
    Seed('copies.teacher', '16GiB', COPIES),
    Seed('copies.preference', '3500MiB', COPIES, True),
    Seed('copies.best_so_far', '16GiB', COPIES, True, IS_LEAK),
    Seed('copies.master_weights', '24GiB', COPIES),
    Seed('large_tensors.data_on_the_device', '16GiB', LONG),
    Seed('large_tensors.vocabulary', '6400MiB', LONG, True, IS_FULL, given=('batch=16384',)),
    Seed('large_tensors.distances', '24GiB', LONG),
    Seed('loading.onto_the_device', '16GiB', ('loaded_twice',)),
    Seed('optimizers.first_step', '8GiB', ('optimizer_state',), True, IS_FULL),
    Seed('optimizers.first_step_of_images', '3GiB', ('optimizer_state',), True, IS_FULL),
    Seed('optimizers.state_is_half', '24GiB', ('optimizer_state',)),
    Seed('optimizers.temporaries', '24GiB', ('optimizer_temporaries',)),
    Seed('activations.deep_decoder', '8GiB', SAVED, True, IS_FULL),
    Seed('activations.larger_pictures', '6GiB', SAVED, True, IS_FULL),
    Seed('activations.one_long_batch', '6GiB', SAVED, True, IS_FULL),
    Seed('activations.scores', '5GiB', SCORES, True, IS_FULL),
    Seed('activations.scores_of_longer_texts', '24GiB', SCORES, True, IS_FULL),
    Seed('activations.large_vocabulary', '8GiB', ('logits_spike',), True),
    Seed('exceptions.halved_batch', '8GiB', EXCEPTION, True),
    Seed('exceptions.skipped_batches', '8GiB', EXCEPTION, True),
    Seed('exceptions.emptied_each_step', '24GiB', EMPTIED, has_bytes=False),
    Seed('exceptions.emptied_in_evaluation', AMPLE, EMPTIED, has_bytes=False),
]

HOLES = [
    Seed('fragments.growing_texts', '4608MiB', GROWING, True, IS_HOLES),
    Seed('fragments.growing_pictures', '5376MiB', GROWING + ('retry_storm',), has_bytes=False),
    Seed('fragments.lengths_of_all_kinds', '4608MiB', GROWING, True, IS_HOLES),
    Seed('fragments.lengths_of_all_kinds under a split limit', AMPLE, ('max_split_size',), has_bytes=False,
         conf='max_split_size_mb:20'),
    Seed('fragments.found_neighbours', '8GiB', PINS, True, IS_HOLES),
    Seed('fragments.found_neighbours of a larger bank', '11GiB', PINS, True, IS_HOLES,
         given=('points=2000000', 'queries=500', 'each=80')),
    Seed('fragments.cached_prefixes', '6GiB', ('retry_storm',), has_bytes=False),
    Seed('fragments.rounded', AMPLE, ('rounding',), conf='roundup_power2_divisions:2'),
    Seed('streams.prepared_aside', AMPLE, ('streams_do_not_share',)),
    Seed('streams.two_models', '24GiB', ('streams_do_not_share',)),
    Seed('streams.prefetched', '24GiB', ('record_stream',), given=('batch=256',), flags=('--lag', 'queries:60')),
    Seed('streams.graph_of_each_size', '24GiB', ('private_pools',)),
    Seed('streams.graph_beside_training', '1600MiB', ('private_pools',), True),
    Seed('outside.neighbour', '9GiB', OUTSIDE, True, IS_OUTSIDE),
    Seed('outside.library', '7GiB', OUTSIDE, True, IS_OUTSIDE),
    Seed('outside.fraction', '8GiB', LIMIT, True, ('limit',), given=('percent=40',)),
    Seed('outside.fraction_of_images', '6GiB', LIMIT, True, ('limit',), given=('percent=25',)),
    Seed('activations.one_long_batch by a hair', '8GiB', ('capacity',) + SAVED, True, IS_FULL,
         has_bytes=False, given=('batch=5',)),
]

# Those with EXPANDABLE have it already: without it, a setting would lower the peak by 10 % and more.
HEALTHY = [Seed(f'healthy.{name}', capacity, conf=''.join(conf)) for name, capacity, *conf in (
    ('decoder', AMPLE), ('checkpointed', '16GiB'), ('accumulated', '24GiB'), ('mixed_precision', AMPLE),
    ('lora', '24GiB'), ('image_net', '16GiB', EXPANDABLE), ('residual_net', AMPLE, EXPANDABLE), ('regression', AMPLE),
    ('trained_and_evaluated', '24GiB'), ('generated', '8GiB'), ('adversarial', '16GiB'), ('policy_gradient', AMPLE),
    ('small_teacher', '40GiB'), ('averaged', '24GiB', EXPANDABLE), ('autoencoder', AMPLE), ('served', '24GiB'),
    ('tiny', AMPLE))]

SEEDS = LEAKS + HOLDERS + HOLES + HEALTHY
