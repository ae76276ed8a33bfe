"""The changes, in the order in which `ashlar fit` shows them: of two that cost nothing and fit, the first one is taken."""

from . import allocator, attention, batch, checkpointing, collection, evaluation, gradients, loss, optimizers, precision

KINDS = (
    evaluation.NoGrad,
    evaluation.OutputsToHost,
    gradients.SetToNone,
    gradients.Early,
    collection.Collect,
    attention.NoCache,
    attention.Sdpa,
    loss.Chunked,
    optimizers.Fused,
    allocator.Expandable,
    optimizers.NoForeach,
    batch.Half,
    batch.Quarter,
    batch.Eighth,
    checkpointing.EverySecond,
    checkpointing.Blocks,
    optimizers.StatesToHost,
    precision.Autocast,
    precision.Weights,
    optimizers.EightBit,
    optimizers.Adafactor,
    optimizers.Sgd,
)
NAMES = tuple(kind.name for kind in KINDS)
SIZE = batch.Size.name + "="


def size(name):
    """Of "batch-size=24"; None of any other name."""
    number = name[len(SIZE):] if name.startswith(SIZE) else ""
    return int(number) if number.isdigit() and int(number) > 0 else None


def make(program, names):
    """Those that are named, which are on; without names all of them, which look on."""
    if names is None:
        return [kind(program, False) for kind in KINDS] + [batch.Size(program)]
    sizes = [batch.Size(program, size(name)) for name in names if size(name)]
    return sizes + [kind(program, True) for kind in KINDS if kind.name in names]
