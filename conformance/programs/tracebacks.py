"""Errors of operations, of backward, of a graph, of compiled code and of kernels in Triton: the frames are the program's and
PyTorch's own, and so are those of a stack that is looked at on the way, and those of the program's snapshots."""

import inspect
import os
import sys
import threading
import traceback

import torch
import triton
from tell import tell
from torch.utils._traceback import CapturedTraceback

HERE = os.path.abspath(__file__)
done = []


def frames(call):
    """(file, function) of each frame, the outermost first."""
    try:
        call()
    except Exception:
        return [(os.path.abspath(frame.filename), frame.name) for frame in traceback.extract_tb(sys.exc_info()[2])]
    raise AssertionError("no error")


def is_ours(file):
    return "ashlar" in os.path.basename(os.path.dirname(file))


def check(name, call, last=None):
    found = frames(call)
    assert not any(is_ours(file) for file, _ in found), (name, found)
    assert found[0] == (HERE, "frames"), (name, found)
    assert last is None or found[-1] == (HERE, last), (name, found)
    done.append(name)


class Refused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        return tensor * 1

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient")


def add():
    return torch.zeros(3, device="cuda") + torch.zeros(4, device="cuda")


def add_in_place():
    torch.zeros(3, device="cuda").add_(torch.zeros(4, device="cuda"))


def linear():
    return layer(torch.zeros(2, 3, 5, device="cuda"))


def too_much():
    return torch.empty(1 << 50, dtype=torch.uint8, device="cuda")


def backward_twice():
    loss = layer(torch.zeros(2, 4, device="cuda")).square().sum()
    loss.backward()
    loss.backward()


class LooksAround(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        return tensor * 1

    @staticmethod
    def backward(ctx, gradient):
        look()
        return gradient


def look():
    """At the stack, by each way that there is."""
    files = [frame.filename for frame in inspect.stack()] + [frame.filename for frame in traceback.extract_stack()]
    files += [frame.filename for frame in CapturedTraceback.extract().summary()]
    looked.append([file for file in files if is_ours(os.path.abspath(file))])


def look_during(name, call):
    before = len(looked)
    call()
    assert len(looked) > before and not any(looked), (name, looked)
    done.append(name)


def in_a_thread():
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()


@triton.jit
def adds_one(values, count: triton.language.constexpr):
    at = values + triton.language.arange(0, count)
    triton.language.store(at, triton.language.load(at) + 1)


def kernel_without_an_argument():
    adds_one[(1,)](torch.zeros(16, device="cuda"))


def files_of(snapshot):
    holders = [event for trace in snapshot.get("device_traces", ()) for event in trace]
    holders += [block for segment in snapshot["segments"] for block in segment["blocks"]]
    return [frame["filename"] for holder in holders for frame in holder.get("frames", ())]


looked = []
torch.cuda.memory._record_memory_history(stacks="python")
layer = torch.nn.Linear(4, 4).cuda()
check("an operation", add, "add")
check("one in place", add_in_place, "add_in_place")
check("a composed one", linear)
check("out of memory", too_much, "too_much")
check("backward", backward_twice)
check("a function of the program's", lambda: Refused.apply(layer.weight).sum().backward(), "backward")
try:
    add()
except RuntimeError as error:
    assert "must match the size" in str(error) and error.__context__ is None, error
done.append("an error's words")
check("a setting that is none", lambda: torch.cuda.memory._record_memory_history(enabled="some"))
look_during("a function's backward", lambda: LooksAround.apply(torch.ones(4, requires_grad=True)).sum().backward())
look_during("a thread", in_a_thread)
compiled = torch.compile(lambda value, rows: value.repeat(rows, 1 << 10) + torch.rand(rows, 1 << 16, device="cuda"))
compiled(torch.ones(1, 64, device="cuda"), 4)
check("compiled code", lambda: compiled(torch.ones(1, 64, device="cuda"), 1 << 30))
adds_one[(1,)](torch.zeros(16, device="cuda"), 16)
check("a kernel in Triton", kernel_without_an_argument)
has_values = os.environ.get("ASHLAR_SMALL_VALUES") != "0"  # without them no kernel is looked at
assert len(adds_one.pre_run_hooks) == has_values and inspect.signature(adds_one.run).parameters["grid"], adds_one.run
kept = [torch.zeros(3, device="cuda") + 1, compiled(torch.ones(1, 64, device="cuda"), 4)]
for name, take in (("memory._snapshot", torch.cuda.memory._snapshot), ("torch._C", torch._C._cuda_memorySnapshot),
                   ("memory_snapshot", lambda: {"segments": torch.cuda.memory_snapshot()})):
    found = files_of(take(None) if name == "torch._C" else take())
    assert HERE in found and not any(is_ours(file) for file in found), (name, set(found))
    done.append(name)
check("a graph", torch.cuda.CUDAGraph().capture_end)
tell("tracebacks", checks=len(done))
