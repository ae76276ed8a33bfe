"""Ashlar explains GPU memory, and is an allocator of it. The distribution on PyPI is `ashlar-gpu`.

    import ashlar_gpu
    ashlar_gpu.on_oom()                                     # tracebacks of out-of-memory errors end with the reason
    ashlar_gpu.explain("snapshot.pickle")                   # a snapshot, a log, an exception
    ashlar_gpu.dry_run(["python", "train.py"], device="T4") # without a GPU: does it fit
    with ashlar_gpu.record() as run: ...                    # the history of a block
    ashlar_gpu.estimate("config.json", batch=8)             # before there is a program
    ashlar_gpu.names()                                      # who holds the memory now, by Python's names
    ashlar_gpu.report("snapshot.pickle")                    # a page to look at
    ashlar_gpu.sweep(["rank0.pickle", "rank1.pickle"])      # the one setting that serves best

In a notebook: %load_ext ashlar_gpu, then %%ashlar. In pytest: the marks fits, max_reserved and oom_at. The allocator
for PyTorch, numba, CuPy and cuda.core is in modules of their names.
"""

from typing import Any

from ashlar_gpu import _native
from ashlar_gpu._dry_run import dry_run
from ashlar_gpu._errors import Error
from ashlar_gpu._estimate import estimate
from ashlar_gpu._explain import explain
from ashlar_gpu._names import Names, names
from ashlar_gpu._on_oom import on_oom
from ashlar_gpu._page import Page
from ashlar_gpu._record import Recording, record
from ashlar_gpu._report import report
from ashlar_gpu._sweep import sweep
from ashlar_gpu.results.dry_run import DryRun
from ashlar_gpu.results.estimate import Estimate
from ashlar_gpu.results.explanation import Explanation
from ashlar_gpu.results.sweep import Sweep

__all__ = ["DryRun", "Error", "Estimate", "Explanation", "Names", "Page", "Recording", "Sweep", "dry_run", "estimate", "explain",
           "names", "on_oom", "record", "report", "sweep"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _native.version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """%load_ext ashlar_gpu."""
    from ashlar_gpu import _magic

    _magic.register(shell)
