"""What `ashlar estimate` answers. Sizes are bytes; None: not known.

The memory of a run before it starts. Sizes in bytes. Null means not known or not there.

Made from docs/schemas/estimate.schema.json by python/make_results.py.
"""

import dataclasses
from typing import Literal, Optional, Tuple

from ashlar_gpu._answer import Answer


@dataclasses.dataclass(frozen=True)
class Layer:
    name: str  # The module's name up to its first number.
    parameters: int  # Elements.
    tensors: int  # How many parameters by name.


@dataclasses.dataclass(frozen=True)
class Tied:
    name: str  # The second name.
    of: str  # The parameter that it is.


@dataclasses.dataclass(frozen=True)
class Outlier:
    name: str  # The parameter.
    shape: Tuple[int, ...]  # Its sizes.
    parameters: int  # Its elements.
    is_embedding: bool  # Whether it is a lookup table, by name and shape.
    # Elements of all parameters with as many rows; null where it is no embedding.
    parameters_of_its_rows: Optional[int]
    column: Optional[str]  # The column that most rows come from; null where no columns are known.
    column_categories: Optional[int]  # How many rows those are.
    parameters_without_column: Optional[int]  # Elements of the whole model without that column.


@dataclasses.dataclass(frozen=True)
class Model:
    family: str  # model_type.
    architecture: Optional[str]  # The class; null for a list of parameters.
    parameters: int  # Elements of all parameters, tied ones once.
    frozen_parameters: int  # Elements without gradients and states.
    host_parameters: int  # Elements that stay on the host.
    layers: Tuple[Layer, ...]  # In the model's order.
    tied: Tuple[Tied, ...]  # Names that are another parameter's tensor.
    outliers: Tuple[Outlier, ...]  # Tensors of a fifth of all parameters or more.


@dataclasses.dataclass(frozen=True)
class Lengths:
    text: str  # As given.
    batching: Literal["fixed", "dynamic", "uniform"]  # How batches are made.
    seed: int  # Of the lengths and of the order.
    samples: int  # Of an epoch.
    longest: int  # Tokens that a sample may have: what fixed batches are padded to.
    samples_cut: int  # Samples that were longer.
    epoch_steps: int  # Optimizer steps of an epoch.
    batch_tokens: Tuple[int, ...]  # Tokens that each batch of the epoch is padded to, in order.


@dataclasses.dataclass(frozen=True)
class Changes:
    vocabulary: Optional[int]  # Rows of the token embeddings; null: the file's, here and below.
    layers: Optional[int]  # Of each stack.
    width: Optional[int]  # Of the model.
    ties_embeddings: Optional[bool]  # Whether input and output embeddings are one tensor.
    shares_embeddings: Optional[bool]  # Whether encoder and decoder share their input embeddings.
    frozen: Tuple[str, ...]  # Modules without gradients.
    has_host_embeddings: bool  # Whether the input embeddings stay on the host.


@dataclasses.dataclass(frozen=True)
class Asked:
    mode: Literal["training", "inference"]  # What runs.
    steps: int  # Optimizer steps or forward passes of the dry run; 0: the weights alone.
    batch: int  # Samples of a batch.
    tokens: int  # Tokens of a sample; with lengths the most that one may have.
    target_tokens: int  # Of an encoder-decoder's target; 0: as many as tokens.
    lengths: Optional[Lengths]  # Of samples that differ; null where all have as many tokens.
    accumulation: int  # Batches of a step.
    is_checkpointed: bool  # Whether layers are recomputed in backward.
    is_padded: bool  # --padded: some sample is shorter than the batch. Of lengths each batch is, whose samples differ.
    keeps_outputs: bool  # What a call returned lives until the next one has returned.
    loss: Optional[str]  # head: the model's own. mean of outputs: of a model without a head. null for inference.
    # fp16 and bf16: autocast; pure: the model itself.
    precision: Literal["fp32", "fp16", "bf16", "fp16-pure", "bf16-pure"]
    # How scores are made; null: the model runs one way alone, or not at all.
    attention: Optional[Literal["eager", "sdpa", "flash"]]
    optimizer: Optional[str]  # null for inference.
    torch: str  # Whose behaviour.
    gpu: str  # Whose library buffers.
    conf: str  # As for PYTORCH_CUDA_ALLOC_CONF.
    changes: Changes  # To the model that the file describes.


@dataclasses.dataclass(frozen=True)
class States:
    optimizer: Optional[str]  # null: inference.
    # fp16 and bf16: autocast; pure: the model itself.
    precision: Literal["fp32", "fp16", "bf16", "fp16-pure", "bf16-pure"]
    weights_bytes: int  # With the 16-bit copies of autocast.
    gradients_bytes: int  # 0 for inference.
    optimizer_bytes: int  # 0 for inference.
    total_bytes: int  # The sum.


@dataclasses.dataclass(frozen=True)
class Device:
    name: Optional[str]  # Of the table; null where none was named.
    capacity_bytes: Optional[int]  # All its memory; null: not given, the run never fails.
    capacity_source: Optional[str]  # Where that number is from.
    context_bytes: int  # What the CUDA context takes.
    context_source: str  # Where that number is from.


@dataclasses.dataclass(frozen=True)
class Moment:
    step: int  # From 1; 0: while the model was made, or no step ran.
    phase: str  # model, forward, backward, optimizer step, between steps.
    parameter: Optional[str]  # Of an optimizer step: whose turn it was; null where that is not known.
    tensor: Optional[str]  # What was being made; null where that is not known.
    # In forward the module at work, in backward the one whose operation is being undone; null where none is.
    module: Optional[str]
    # In forward PyTorch's name of it (softmax), in backward the node's (SoftmaxBackward); null where none is.
    operation: Optional[str]
    request_bytes: int  # The request made there.


@dataclasses.dataclass(frozen=True)
class Parts:
    weights_bytes: int  # Parameters and copies of them.
    optimizer_bytes: int  # Optimizer states.
    gradients_bytes: int  # Of parameters.
    saved_activations_bytes: int  # Made in a forward pass and kept for backward.
    temporaries_bytes: int  # Gradients of activations, recomputed activations, scratch.
    batch_bytes: int  # Inputs.
    libraries_bytes: int  # Workspaces kept for good.
    rounding_and_cache_bytes: int  # Reserved less all the above.
    driver_bytes: int  # Workspaces that the driver gives, outside allocator and context.
    context_bytes: int  # The CUDA context.


@dataclasses.dataclass(frozen=True)
class Phase:
    step: int  # From 1; 0: while the model was made.
    # model, forward, backward, optimizer step: at their greatest need of all the step's batches; between steps: its
    # end, what a step leaves.
    phase: str
    weights_bytes: int  # Parameters and copies of them.
    optimizer_bytes: int  # Optimizer states.
    gradients_bytes: int  # Of parameters.
    saved_activations_bytes: int  # Made in a forward pass and kept for backward.
    temporaries_bytes: int  # Gradients of activations, recomputed activations, scratch.
    batch_bytes: int  # Inputs.
    libraries_bytes: int  # Workspaces kept for good.
    rounding_and_cache_bytes: int  # Reserved less all the above.
    reserved_bytes: int  # Then, without driver and context.


@dataclasses.dataclass(frozen=True)
class Run:
    fits: bool  # false: a request failed and the run ended there.
    device_bytes: int  # What the device shows: context, driver and reserved, at the peak or when the request failed.
    peak_requested_bytes: int  # Before rounding.
    peak_allocated_bytes: int  # Block sizes.
    peak_reserved_bytes: int  # Segments.
    failed_bytes: Optional[int]  # The request that failed; null where none did.
    requests: int  # That were served.
    moment: Moment  # Of the greatest need, or of the failed request.
    parts: Parts  # Of device_bytes at that moment; they sum to it.
    phases: Tuple[Phase, ...]  # The parts over time, in the order in which the phases began.


@dataclasses.dataclass(frozen=True)
class Interval:
    least_bytes: int  # Of both runs and, where the context is another device's, of the least context known.
    most_bytes: int  # The same with the most.
    reason: str  # Why it is not one number.


@dataclasses.dataclass(frozen=True)
class Quantiles:
    least: int  # The lowest.
    median: int  # Half are not above.
    p95: int  # 95 of 100 are not above.
    most: int  # The highest.


@dataclasses.dataclass(frozen=True)
class ShuffleBatching:
    batching: Literal["fixed", "dynamic", "uniform"]  # How batches are made.
    padded_tokens: Quantiles  # Of the longest batch of each shuffle.
    peak_requested_bytes: Quantiles  # Over the shuffles.


@dataclasses.dataclass(frozen=True)
class ShuffleRow:
    batching: Literal["fixed", "dynamic", "uniform"]  # How batches are made.
    conf: str  # As for PYTORCH_CUDA_ALLOC_CONF; empty: the default settings.
    is_asked: bool  # The batching and settings of the estimate.
    memory_fraction: Optional[int]  # As for set_per_process_memory_fraction, which this setting needs.
    failed: Optional[int]  # Shuffles in which a request failed; null where the memory is not known.
    failed_step: Optional[Quantiles]  # Of those the step of the first failure, from 1; null without any.
    peak_reserved_bytes: Optional[Quantiles]  # In memory without end; null for a setting that acts at a limit alone.


@dataclasses.dataclass(frozen=True)
class Shuffles:
    shuffles: int  # Orders that were tried.
    steps: int  # Steps that were run of each.
    epoch_steps: int  # Steps of an epoch.
    batchings: Tuple[ShuffleBatching, ...]  # What does not depend on settings.
    rows: Tuple[ShuffleRow, ...]  # By batching, then settings: those asked for first.


@dataclasses.dataclass(frozen=True)
class LeverRow:
    lever: str  # Its name.
    flags: str  # The flags that do the same.
    costs: str  # What it costs.
    price: Optional[int]  # That --fit adds up; null: another training, never taken.
    saved_bytes: int  # Below 0 it takes more.
    device_bytes: int  # With it, the higher of both orders of addresses.
    fits: Optional[bool]  # In both orders; null: no capacity.


@dataclasses.dataclass(frozen=True)
class LeverSkipped:
    lever: str  # Its name.
    why: str  # One line.


@dataclasses.dataclass(frozen=True)
class Levers:
    device_bytes: int  # On the device without any, in memory without end.
    fits: Optional[bool]  # Whether it fits without any; null: no capacity.
    rows: Tuple[LeverRow, ...]  # Most saved first.
    skipped: Tuple[LeverSkipped, ...]  # Levers that this run does not have.


@dataclasses.dataclass(frozen=True)
class LargestBatch:
    batch: int  # 0: not even 1 fits.
    device_bytes: int  # Of it; 0 without.
    tried: int  # Batches that were run.
    is_bounded: bool  # false: the largest that is tried fits.
    exceptions: Tuple[int, ...]  # Smaller ones that fail and larger ones that fit.


@dataclasses.dataclass(frozen=True)
class LeverSet:
    levers: Tuple[str, ...]  # By name.
    flags: Tuple[str, ...]  # Of each; those of a later one replace the same flag of an earlier one.
    price: int  # The sum.
    device_bytes: int  # With all of them, in memory without end.


@dataclasses.dataclass(frozen=True)
class Fit:
    capacity_bytes: int  # Of the whole device.
    fits: bool  # As asked, in both orders of addresses.
    device_bytes: int  # As asked, in memory without end.
    largest_batch: LargestBatch  # As asked.
    cheapest: Optional[LeverSet]  # The lowest price that fits; null where it fits as asked, or none does.
    largest_batch_of_cheapest: Optional[LargestBatch]  # With those levers.
    least: Optional[LeverSet]  # Where none fits, the one that needs least.
    sets_tried: int  # Sets of levers that were run.


@dataclasses.dataclass(frozen=True)
class Note:
    name: str  # Stable key.
    message: str  # One sentence.
    count: int  # How often.


@dataclasses.dataclass(frozen=True, repr=False)
class Estimate(Answer):
    input: str  # The name as given; empty with --parameters.
    model: Model  # What the description tells.
    asked: Asked  # The run that was asked for.
    # Weights, gradients and optimizer states from shapes alone: what was asked for first, then others to compare with.
    states: Tuple[States, ...]
    rule_of_thumb_bytes: int  # 16 bytes a parameter + 4 bytes x tokens of a sample x batch + 2 GiB.
    device: Device  # Where it would run.
    no_dry_run: Optional[str]  # Why there is no dry run; null where there is one.
    ascending: Optional[Run]  # The dry run with the driver's addresses ascending; null without one.
    descending: Optional[Run]  # The same with descending addresses.
    interval: Optional[Interval]  # Of the device's bytes at the peak; null without a dry run, or where one fails.
    shuffles: Optional[Shuffles]  # What other orders of the samples come to; null without --shuffles.
    levers: Optional[Levers]  # What each change alone would save; null without --levers.
    fit: Optional[Fit]  # What it takes to fit; null without --fit.
    notes: Tuple[Note, ...]  # What was guessed or took a default.
