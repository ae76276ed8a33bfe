"""PyTorch on Ashlar's allocator.

    import ashlar_gpu.torch
    ashlar_gpu.torch.install()                                   # before CUDA's first use; the program stays as it is
    ashlar_gpu.torch.install("max_split_size_mb:128")            # with settings

    with ashlar_gpu.torch.pool():                                # a private pool for what is allocated in here
        cache = torch.empty(1 << 30, device="cuda")

    with ashlar_gpu.torch.tag("rollout"):                        # a pool with a name,
        cache = torch.empty(1 << 30, device="cuda")
    ashlar_gpu.torch.sleep("rollout", keep="nothing")            # whose memory others have, until
    ashlar_gpu.torch.wake("rollout")

After install what asks PyTorch's allocator asks Ashlar's, by PyTorch's own class for allocators (_torch_native), where that
can be built; else by its plug-in, which offers less, and one line says so (docs/library/integrations/torch.md).

Without install `pool` gives one torch.cuda.MemPool of PyTorch's own allocator whose memory comes from Ashlar.

Settings: PYTORCH_CUDA_ALLOC_CONF, then ASHLAR_CONF, then `conf`; the last that names a key wins. Their rules are those of
the release of PyTorch that runs (ashlar guide settings). Errors are one line. Threads: install once, from one thread.
"""

import atexit
import contextlib
import os
import sys

import torch

from . import _library as c
from . import _torch_native, _torch_patches, _torch_plugin, _torch_pools, _torch_settings, _torch_sleep, _torch_tuner
from ._library import Error

__all__ = ["Error", "dump_snapshot", "held", "install", "interface", "is_asleep", "is_installed", "memory_stats", "pool",
           "register_range", "settings", "sleep", "snapshot", "tag", "tagged_bytes", "unregister_range", "wake"]

INTERFACES = ("native", "pluggable")
_installed = None  # what PyTorch was given, kept as long as the process


def is_installed():
    return _installed is not None


def _say(line):
    print("ashlar: tune: " + line, file=sys.stderr, flush=True)


def interface():
    """How PyTorch calls Ashlar: "native" by its own class for allocators, "pluggable" by CUDAPluggableAllocator; None
    before install."""
    return None if _installed is None else INTERFACES[0 if isinstance(_installed, _torch_native.Native) else 1]


def _tune(mode, history):
    """Of the device that is current when CUDA is first used. A last look is taken at the end. `history`: where it takes
    the place of the tuner's ring; None: nowhere."""
    device = torch.cuda.current_device()
    tuner = _torch_tuner.Tuner(mode, c.process_allocator(device), _say,
                               copy_recording=lambda file: history is not None and history.copy_recording(device, file))
    tuner.start()
    atexit.register(tuner.stop, last_look=True)


def _wanted_interface(given):
    wanted = given or os.environ.get("ASHLAR_TORCH_INTERFACE") or None
    if wanted is not None and wanted not in INTERFACES:
        raise Error(c.INVALID_ARGUMENT, f"ashlar: install: '{wanted}' is no interface: native or pluggable")
    return wanted


def _install_native(conf, wanted):
    """None where it is not available, which is one line, or an error where it was asked for."""
    try:
        native = _torch_native.Native.load(torch)
        native.install(conf)
        return native
    except (_torch_native.Unavailable, ImportError) as error:
        if wanted == "native":
            raise Error(c.UNAVAILABLE, f"ashlar: install: no native interface: {error}") from None
        print(f"ashlar: PyTorch's pluggable interface is used, which offers less than its own: {error}", file=sys.stderr,
              flush=True)
    return None


def _install_pluggable():
    """(the plug-in, the history)"""
    plugin = _torch_plugin.whole_process(torch)
    torch.cuda.memory.change_current_allocator(plugin)
    return plugin, _torch_patches.apply(torch)


def install(conf=None, takes_pytorch_conf=True, tune=None, interface=None):
    """Makes Ashlar PyTorch's allocator in this process. `conf`: settings; `takes_pytorch_conf`: PYTORCH_CUDA_ALLOC_CONF's
    too. `tune`: "advise" or "switch" (ashlar guide tuner), else ASHLAR_TUNE. `interface`: "native" or "pluggable", else
    ASHLAR_TORCH_INTERFACE, else native where it can be. Error where CUDA has been used already, or a setting is wrong."""
    global _installed
    mode, wanted = _torch_tuner.mode_of(tune), _wanted_interface(interface)
    if is_installed():
        raise Error(c.FAILED_PRECONDITION, "ashlar: install: Ashlar is PyTorch's allocator already")
    if not torch.backends.cuda.is_built():
        raise Error(c.UNAVAILABLE, f"ashlar: install: PyTorch {torch.__version__} is built without CUDA")
    if torch.cuda.is_initialized():
        raise Error(c.FAILED_PRECONDITION, "ashlar: install: CUDA is in use already, and PyTorch changes its allocator "
                    "only before: call it right after `import torch`")
    chosen = _torch_settings.merged(conf, torch.__version__, takes_pytorch_conf)
    c.configure_process(chosen)
    history, _installed = None, None if wanted == "pluggable" else _install_native(chosen, wanted)
    if _installed is None:
        _installed, history = _install_pluggable()
    if mode is not None:
        torch.cuda._lazy_call(lambda: _tune(mode, history))


def settings():
    """The settings that install chose, as text."""
    return c.conf(c.process_allocator(torch.cuda.current_device()))


@contextlib.contextmanager
def _scope(of, device):
    with torch.cuda.use_mem_pool(of, device):
        yield of


def pool(device=None, use_on_oom=False, no_split=False):
    """A context: what this thread allocates in it comes from a new private pool, whose memory goes back once the context
    and what was allocated in it are gone. It gives the torch.cuda.MemPool, for torch.cuda.use_mem_pool(...) again."""
    traits = {"use_on_oom": use_on_oom, "no_split": no_split}
    with torch.cuda.device(device):
        if interface() == "native":
            of = torch.cuda.MemPool(**{key: value for key, value in traits.items() if value})
        elif is_installed():
            of = _torch_pools.MemPool(**traits)
        else:
            segments = _torch_plugin.segments(torch).allocator()
            of = torch.cuda.MemPool(segments, **{key: value for key, value in traits.items() if value})
    return _scope(of, device)


def _expect_installed(call):
    if not is_installed():
        raise Error(c.FAILED_PRECONDITION, f"ashlar: {call}: PyTorch has its own allocator: call install first")


_tags = _torch_sleep.Tags(lambda: torch.cuda.MemPool() if interface() == "native" else _torch_pools.MemPool())


def tag(name, device=None):
    """A context: what this thread allocates in it belongs to `name`, and sleeps by it."""
    _expect_installed("tag")
    return _tags.scope(name, device)


def tagged_bytes(name, device=None):
    """Bytes of the segments with what was allocated under the tag, asleep or not."""
    return sum(segment["total_size"] for segment in _tags.segments(name, device))


def sleep(*tags, keep="host", host_limit=None, folder=None, device=None, pools=(), progress=None):
    """Gives back the memory of everything that was allocated under one of the tags or in one of the pools, where none is
    named of all: the bytes. Tensors stay, and must not be used until wake. `keep`: "host" keeps what they hold in memory of
    the host, at most `host_limit` bytes (without one three quarters of what the host can give), and the rest in a file;
    "file" in a file of `folder`, which has no name; "nothing" loses it. `pools`: their ids (MemPool.id, CUDAGraph.pool()).
    `progress(copied bytes, all bytes)` is called after each piece of at most 64 MiB, and must not use the GPU. Error where
    it cannot be: of memory without a tag, but under expandable_segments or policy:ashlar; while a graph is captured. A
    warning where a pool stays awake, since somebody else uses it."""
    _expect_installed("sleep")
    return _torch_sleep.sleep(tags, keep, host_limit, folder, device, pools, progress)


def wake(*tags, device=None, pools=(), progress=None):
    """The same tensors with the same bytes at the same addresses, of these tags and pools, where none is named of all that
    sleep. torch.cuda.OutOfMemoryError: nothing of it woke, and what is kept stays kept."""
    _expect_installed("wake")
    _torch_sleep.wake(tags, device, pools, progress)


def is_asleep(tensor):
    """Whether its memory is away until `wake`."""
    _expect_installed("is_asleep")
    return _torch_sleep.is_asleep(tensor.data_ptr(), tensor.device)


def held(device=None):
    """[(owner, bytes)] of the device's memory in use, the largest part first: pools that are awake, by their tags and with what
    keeps them awake, and what is outside PyTorch."""
    _expect_installed("held")
    return _torch_sleep.held(device)


def register_range(tensor):
    """Another library, a network card or another process uses the tensor's storage as it is: until `unregister_range` none
    of it is given back to the device, and its pool does not sleep. Error where it sleeps, or is not of this allocator."""
    _expect_installed("register_range")
    _torch_sleep.register_range(tensor)


def unregister_range(tensor):
    """Ends the newest `register_range` of the tensor's storage."""
    _expect_installed("unregister_range")
    _torch_sleep.unregister_range(tensor)


def memory_stats(device=None):
    """As torch.cuda.memory_stats."""
    return torch.cuda.memory_stats(device)


def snapshot():
    """As torch.cuda.memory._snapshot()."""
    return torch.cuda.memory._snapshot()


def dump_snapshot(filename="dump_snapshot.pickle"):
    """As torch.cuda.memory._dump_snapshot: for `ashlar explain` and for pytorch.org/memory_viz."""
    torch.cuda.memory._dump_snapshot(filename)


if __name__ == "__main__":
    import sys

    from ashlar_gpu import _torch_main

    _torch_main.main(sys.argv[1:])
