"""Points PyTorch's own functions for memory at Ashlar's answers, where PyTorch's pluggable allocator has none.

torch.cuda's functions ask torch._C; what they ask it for is replaced there, so that each of them, and every library that
calls them, works. Only functions that the release has are replaced. Threads: apply once, before CUDA's first use.
"""

import functools
import warnings

from . import _torch_plugin as plugin
from . import _torch_pools, _torch_statistics
from ._torch_history import History

_kept = []  # callbacks that C holds
_fractions = {}  # device -> the fraction that was set


def _index(torch, device):
    return torch.cuda.current_device() if device is None or device < 0 else int(device)


class _Answers:
    """The functions of torch._C, by their names there without "_cuda_"."""

    def __init__(self, torch):
        self.torch = torch
        self.history = History()
        self.observers = []
        self.set_fraction = getattr(torch._C, "_cuda_setMemoryFraction", None)

    # --- statistics ---
    def memoryStats(self, device):
        return _torch_statistics.of_device(device, plugin.open_allocator(device))

    def resetPeakMemoryStats(self, device):
        _torch_statistics.reset_peaks(plugin.open_allocator(_index(self.torch, device)))

    def resetAccumulatedMemoryStats(self, device):
        device = _index(self.torch, device)
        _torch_statistics.reset_accumulated(device, plugin.open_allocator(device))

    def setMemoryFraction(self, fraction, device):
        self.set_fraction(fraction, device)
        _fractions[device] = fraction

    def getMemoryFraction(self, device):
        return _fractions.get(device, 1.0)

    # --- history ---
    def memorySnapshot(self, pool=None):
        pool = tuple(pool or (0, 0))
        wants_traces = pool[2] if len(pool) > 2 else True
        return self.history.snapshot(pool[:2], wants_traces, self.torch.cuda.device_count())

    def record_memory_history(self, enabled, *arguments):
        """(enabled, context, stacks, max_entries, clears, ...), shorter in older releases."""
        if not enabled:
            return self.history.stop()
        most = next((value for value in arguments if isinstance(value, int) and not isinstance(value, bool)), None)
        clears = len(arguments) > 3 and bool(arguments[3])
        return self.history.start(most if most is not None and most < 2**62 else None, clears)

    def record_memory_history_legacy(self, enabled, context=True, max_entries=1, *_):
        return self.history.start(max_entries) if enabled else self.history.stop()

    def isHistoryEnabled(self):
        return self.history.is_on

    def attach_out_of_memory_observer(self, observer):
        self.observers.append(observer)

    def at_opening(self, device):
        try:
            self.history.add_device(device)
        except Exception as error:  # a C function calls this: nothing above would see it
            warnings.warn(f"ashlar: device {device} is not recorded: {error}", stacklevel=1)

    def at_failure(self, device, requested):
        for observer in self.observers:
            try:
                free, total = self.torch.cuda.mem_get_info(device)
                observer(device, requested, total, free)
            except Exception as error:
                warnings.warn(f"ashlar: an observer of failures failed: {error}", stacklevel=1)


NAMES = ("memoryStats", "resetPeakMemoryStats", "resetAccumulatedMemoryStats", "setMemoryFraction", "getMemoryFraction",
         "memorySnapshot", "record_memory_history", "record_memory_history_legacy", "isHistoryEnabled",
         "attach_out_of_memory_observer")


def _leave_benchmark_off(torch):
    """cudnn.benchmark asks the allocator for its largest free block (cacheInfo), which ends a convolution with an error."""
    switch = getattr(torch._C, "_set_cudnn_benchmark", None)
    if switch is None:
        return

    def _set_cudnn_benchmark(value):
        if value:
            warnings.warn("ashlar: torch.backends.cudnn.benchmark stays off: PyTorch has no cacheInfo for a pluggable "
                          "allocator", stacklevel=3)
        return switch(False)

    _set_cudnn_benchmark(torch._C._get_cudnn_benchmark())
    torch._C._set_cudnn_benchmark = _set_cudnn_benchmark
    of = type(torch.backends.cudnn)  # its attributes hold the functions that were there when it was made
    if hasattr(of, "benchmark"):
        of.benchmark = type(of.__dict__["benchmark"])(torch._C._get_cudnn_benchmark, _set_cudnn_benchmark)


def _leave_graph_trees_off(torch):
    """torch.compile's CUDA graph trees take checkpoints of a pool; its plain CUDA graphs do without."""
    if not hasattr(torch, "compile"):
        return
    original = torch.compile

    @functools.wraps(original)
    def compile(*arguments, **keywords):
        import torch._inductor.config as config  # at the first use: it takes its time

        config.triton.cudagraph_trees = False
        return original(*arguments, **keywords)

    torch.compile = compile


def apply(torch):
    """Gives the history."""
    answers = _Answers(torch)
    for name in NAMES:
        if hasattr(torch._C, "_cuda_" + name):
            setattr(torch._C, "_cuda_" + name, getattr(answers, name))
    for module in (torch.cuda, torch.cuda.memory):
        for ours in (_torch_pools.MemPool, _torch_pools.use_mem_pool):
            if hasattr(module, ours.__name__):
                setattr(module, ours.__name__, ours)
    _leave_benchmark_off(torch)
    _leave_graph_trees_off(torch)
    callbacks = plugin.Opened(answers.at_opening), plugin.Failed(answers.at_failure)
    _kept.append(callbacks)
    plugin.library().ashlar_torch_observe(*callbacks)
    return answers.history
