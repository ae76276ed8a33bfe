"""The changes, in the order in which `ashlar fit` shows them: of two that cost nothing and fit, the first one is taken."""

from . import (allocator, attention, batch, checkpointing, collection, embeddings, engine, evaluation, freezing, gradients, lengths, loss,
               optimizers, order, outputs, precision, serving)

KINDS = (
    evaluation.NoGrad,
    evaluation.OutputsToHost,
    gradients.SetToNone,
    gradients.Early,
    outputs.Release,
    collection.Collect,
    attention.NoCache,
    attention.Sdpa,
    serving.Static,
    serving.Offloaded,
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
    embeddings.OnHost,
    order.OneLength,
    precision.Autocast,
    precision.Weights,
    optimizers.EightBit,
    optimizers.Adafactor,
    optimizers.Sgd,
    freezing.FirstHalf,
    serving.EightBit,
    serving.Quantized,
    serving.FourBit,
    serving.OnHost,
    engine.Share,
    engine.Eager,
    engine.NarrowCache,
    engine.NarrowWeights,
)
NAMES = tuple(kind.name for kind in KINDS)
# "batch-size=24", "length=256", "checkpointing-heaviest=0+2", "context=4096"
ASKING = (batch.Size, lengths.Cap, checkpointing.Heaviest, engine.Context)


def asked(name):
    """(kind, what it asks for) of such a name; None of any other."""
    for kind in ASKING:
        what = kind.asked(name[len(kind.name) + 1:]) if name.startswith(kind.name + "=") else None
        if what is not None:
            return kind, what
    return None


def make(program, names):
    """Those that are named, which are on; without names all of them, which look on."""
    if names is None:
        return [kind(program, False) for kind in KINDS] + [kind(program) for kind in ASKING]
    made = [kind(program, what) for kind, what in filter(None, map(asked, names))]
    worst = [order.WorstFirst(program, True)] if order.WorstFirst.name in names else []
    return worst + made + [kind(program, True) for kind in KINDS if kind.name in names]
