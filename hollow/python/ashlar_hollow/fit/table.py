"""The changes, in the order in which `ashlar fit` shows them."""

from . import attention, batch, checkpointing, evaluation, gradients, optimizers, precision

KINDS = (
    evaluation.NoGrad,
    gradients.SetToNone,
    gradients.Early,
    attention.NoCache,
    attention.Sdpa,
    optimizers.Fused,
    optimizers.NoForeach,
    batch.Half,
    batch.Quarter,
    batch.Eighth,
    checkpointing.EverySecond,
    checkpointing.Blocks,
    precision.Autocast,
    optimizers.Adafactor,
    optimizers.Sgd,
)
NAMES = tuple(kind.name for kind in KINDS)


def make(program, names):
    """Those that are named, which are on; without names all of them, which look on."""
    if names is None:
        return [kind(program, False) for kind in KINDS]
    return [kind(program, True) for kind in KINDS if kind.name in names]
