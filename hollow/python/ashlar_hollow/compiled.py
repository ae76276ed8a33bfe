"""What writes device memory past the dispatcher: compiled code, kernels written in Triton, replays of CUDA graphs.

Thread rule: any thread.
"""

import weakref

from . import imports
from .observer import never_compile
from .unseen import during, unseen


def _watch_inductor(torch, known):
    def before(_):
        return known.forget_unused

    def forget_written(graph, inputs):
        for index in getattr(graph, "mutated_input_idxs", ()):
            if isinstance(inputs[index], torch.Tensor) and inputs[index].is_cuda:
                known.forget(inputs[index])
        return inputs

    def watch(module):
        graph = getattr(module, "CompiledFxGraph", None)
        if graph is None or hasattr(graph, "ashlar_watched"):  # one class may be reached by two modules
            return
        graph.__call__ = during(graph.__call__, before, forget_written)
        graph.ashlar_watched = True

    never_compile(torch, before, forget_written)
    imports.after("torch._inductor.output_code", watch)  # 2.6 and later
    imports.after("torch._inductor.codecache", watch)


class _Hooks(list):
    """The hooks of a kernel, ours among them. Ours is in no copy: a pickled kernel, as torch.compile keeps them on disk, is as it is
    without us."""

    def __init__(self, hooks, ours):
        list.__init__(self, [hook for hook in hooks if hook is not ours] + [ours])
        self.ours = ours

    def __reduce_ex__(self, protocol):
        return list, ([hook for hook in self if hook is not self.ours],)


def _watch_triton(torch, known):
    def forget(*args, **kwargs):
        for value in list(args) + list(kwargs.values()):
            if isinstance(value, torch.Tensor) and value.is_cuda:
                known.forget(value)  # which of them it writes is not told

    def hooks(kernel):
        if not isinstance(vars(kernel)["pre_run_hooks"], _Hooks):  # it was unpickled
            set_hooks(kernel, vars(kernel)["pre_run_hooks"])
        return vars(kernel)["pre_run_hooks"]

    def set_hooks(kernel, given):
        vars(kernel)["pre_run_hooks"] = _Hooks(given, forget)

    def watch(module):
        kernel = module.JITFunction
        if hasattr(kernel, "add_pre_run_hook"):  # Triton 3 and later
            kernel.pre_run_hooks = property(hooks, set_hooks)
            return
        original = kernel.run

        def run(self, *args, **kwargs):
            forget(*args, **kwargs)
            return original(self, *args, **kwargs)

        kernel.run = unseen(run)

    never_compile(torch, forget)
    imports.after("triton.runtime.jit", watch)


def _watch_graphs(torch, known):
    graph = torch.cuda.CUDAGraph
    begin, end, replay = graph.capture_begin, graph.capture_end, graph.replay
    written = weakref.WeakKeyDictionary()

    def capture_begin(self, *args, **kwargs):
        known.graph = []
        return begin(self, *args, **kwargs)

    def capture_end(self):
        written[self], known.graph = known.graph or [], None
        return end(self)

    def _replay(self):
        known.forget_runs(written.get(self, ()))
        return replay(self)

    graph.capture_begin, graph.capture_end, graph.replay = unseen(capture_begin), unseen(capture_end), unseen(_replay)


def install(torch, known):
    _watch_inductor(torch, known)
    _watch_triton(torch, known)
    _watch_graphs(torch, known)
