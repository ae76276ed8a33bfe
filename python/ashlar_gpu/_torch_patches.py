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
_told = set()  # what was asked of us in vain, and a warning said so
ACTIONS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
           "snapshot", "oom"}  # of entries of a history
# Arguments of _record_memory_history that are not served, by their place after `clear_history`: what to know.
UNSERVED = {
    0: ("compile_context", "entries have no frames: PyTorch tells them to its own allocator only"),
    1: ("global_record_annotations", "PyTorch tells its annotations to its own allocator only"),
    3: ("record_pinned_host_memory", "host memory is PyTorch's own: see torch.cuda.host_memory_stats"),
}


def _not_served(asked, instead):
    """Once for each thing that is asked."""
    if asked not in _told:
        _told.add(asked)
        warnings.warn(f"ashlar: {asked} is not served with Ashlar's allocator: {instead}", stacklevel=4)


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

    def record_memory_history(self, enabled, context=None, stacks=None, max_entries=None, clears=False, *more):
        """Shorter in older releases."""
        if not enabled:
            return self.history.stop()
        return self._record(max_entries if max_entries is not None and max_entries < 2**62 else None, clears, more)

    def record_memory_history_legacy(self, enabled, context=True, max_entries=1, context_too=False, cpp=False, clears=False,
                                     *more):
        return self._record(max_entries, clears, more) if enabled else self.history.stop()

    def _record(self, most, clears, more):
        """`more`: (compile_context, global_record_annotations, skip_actions, record_pinned_host_memory, record_cuda)."""
        for place, (name, instead) in UNSERVED.items():
            if len(more) > place and more[place]:
                _not_served(f"{name} of torch.cuda.memory._record_memory_history", instead)
        if len(more) > 4 and not more[4]:  # the history of pinned host memory alone
            return None
        skips = set(more[2]) if len(more) > 2 else set()
        for unknown in sorted(skips - ACTIONS):
            _not_served(f"skip_actions of {unknown!r}", f"an entry is one of {', '.join(sorted(ACTIONS))}")
        return self.history.start(most, bool(clears), skips)

    def isHistoryEnabled(self):
        return self.history.is_on

    def attach_out_of_memory_observer(self, observer):
        self.observers.append(observer)

    # --- torch.accelerator: the same allocators ---
    def isAllocatorInitialized(self):
        return self.torch.cuda.is_initialized()

    def emptyCache(self, *_):
        self.torch.cuda.empty_cache()

    def getMemoryInfo(self, device):
        return self.torch.cuda.mem_get_info(device)

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
# Of torch._C, by their names there without "_accelerator_": the answer.
ACCELERATOR_NAMES = {"isAllocatorInitialized": "isAllocatorInitialized", "emptyCache": "emptyCache",
                     "getMemoryInfo": "getMemoryInfo", "getDeviceStats": "memoryStats",
                     "resetPeakStats": "resetPeakMemoryStats", "resetAccumulatedStats": "resetAccumulatedMemoryStats"}
# Functions of torch._C that take what is asked and do nothing with it: how the program knows them, what to use instead,
# and of which arguments that is so.
IDLE = {
    "_accelerator_setAllocatorSettings": ("torch.cuda.memory._set_allocator_settings",
                                          "give the settings to ashlar_gpu.torch.install", lambda *_: True),
    "_cuda_cudaCachingAllocator_set_allocator_settings": ("torch.cuda.memory._set_allocator_settings",
                                                          "give the settings to ashlar_gpu.torch.install",
                                                          lambda *_: True),
    "_cuda_cudaCachingAllocator_enable": ("torch.cuda.memory.caching_allocator_enable(False)",
                                          "a process without ashlar_gpu.torch.install has none",
                                          lambda value, *_: not value),
}


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


def _telling(function, asked, instead, is_idle):
    """PyTorch's own function, which refuses what is wrong; and the warning that it does no more."""

    @functools.wraps(function)
    def tell(*arguments):
        out = function(*arguments)
        if is_idle(*arguments):
            _not_served(asked, instead)
        return out

    return tell


def _answer(torch, answers):
    """Only what the release has."""
    names = {"_cuda_" + name: name for name in NAMES}
    names.update(("_accelerator_" + name, answer) for name, answer in ACCELERATOR_NAMES.items())
    for name, answer in names.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, getattr(answers, answer))
    for name, words in IDLE.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, _telling(getattr(torch._C, name), *words))


def apply(torch):
    """Gives the history."""
    answers = _Answers(torch)
    _answer(torch, answers)
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
