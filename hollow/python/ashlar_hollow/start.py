"""What is installed in an interpreter, by the settings: hooks only, until the program imports torch."""

import os

from . import imports, settings


def _seed(module):
    module.seed(0)


def _history(torch):
    from . import history

    history.install(torch, settings.record_folder(), settings.number(settings.HISTORY, 1000000))


def _values(torch):
    from . import library, values

    hollow = library.find()
    if hollow is not None:
        values.install(torch, hollow, settings.small_values())


def _devices_of_jax(hardware):
    """JAX looks for NVIDIA's device files, which a hollow device has none of, and takes the CPU without."""
    hardware.has_visible_nvidia_gpu = lambda: True


def _memory_of_jax(jax):
    from . import jax_memory

    jax_memory.install(settings.record_folder())


def _memory_of_vllm(worker):
    from . import vllm_memory

    vllm_memory.watch(worker, settings.record_folder())


def _cache_of_vllm(engine):
    from . import vllm_memory

    vllm_memory.watch_engine(engine, settings.record_folder())


def _memory_of_sglang(runner):
    from . import sglang_memory

    sglang_memory.watch(runner, settings.record_folder())


def _ends_of_sglang(scheduler):
    from . import sglang_end

    sglang_end.answer(scheduler)


def _kills_of_sglang(common):
    from . import sglang_end

    sglang_end.ask(common)


def _kernels_of_sglang(loader):
    from . import sglang_kernels

    sglang_kernels.watch(loader)


def _skip_init(torch):
    from . import fresh

    fresh.install(torch)


def _knows(tensor):
    """Whether all of what a tensor of the device holds is no made-up value."""
    from . import library

    hollow = library.find()
    return hollow is not None and hollow.is_known(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def _fit(names, stopped):
    from . import imported
    from .fit import start

    imported.watch(imports.after)
    chosen = None if names == "watch" else names.split(",")
    start.start(imports.after, chosen, settings.record_folder(), settings.number(settings.FIT_STOP, 0),
                counts=settings.flag(settings.FIT_COUNTS), draws=os.environ.get(settings.FIT_DRAWN),
                leaves_draws=bool(os.environ.get(settings.APART)), imported=imported, stopped=stopped, knows=_knows,
                has_ample_room=settings.flag(settings.FIT_ROOM))


def start(stopped=None):
    """`stopped()` is called before a run is ended at a step that it was given."""
    if os.environ.get(settings.APART):
        from . import apart

        apart.start()
    if settings.flag(settings.REPRODUCIBLE):
        imports.after("random", _seed)  # torch's own seeds do not change from run to run
        imports.after("numpy.random", _seed)
    if settings.record_folder():
        imports.after("torch", _history)
        imports.after("jax", _memory_of_jax)
    if os.environ.get(settings.HOLLOW_RUN):
        imports.after("torch", _values)
        imports.after("jax._src.hardware_utils", _devices_of_jax)
        imports.after("vllm.v1.worker.gpu_worker", _memory_of_vllm)
        imports.after("vllm.v1.engine.core", _cache_of_vllm)
        imports.after("sglang.kernels.jit.utils.compile.loader", _kernels_of_sglang)
        imports.after("sglang.srt.model_executor.model_runner", _memory_of_sglang)
        imports.after("sglang.srt.managers.scheduler", _ends_of_sglang)
        imports.after("sglang.srt.utils.common", _kills_of_sglang)
    if os.environ.get(settings.RANKS):
        from . import ranks

        ranks.start(imports.after, os.environ[settings.RANKS])
    if os.environ.get(settings.FIT):
        _fit(os.environ[settings.FIT], stopped)
    if settings.flag(settings.SKIP_INIT):
        imports.after("torch", _skip_init)
