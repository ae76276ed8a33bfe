"""Sleep and wake with PyTorch's tensors, pools and graphs: what each scene saw. sleep_rows.py knows what must be so.

Blocks of 20 and 40 MiB fill their pages under every setting. `held` is what the device has given, without the context.
"""

import gc
import os
import tempfile
import warnings

import torch
from tell import tell

import ashlar_gpu.torch as ashlar

MIB = 1 << 20
seen = {}


def block(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def held():
    free, total = torch.cuda.mem_get_info()
    return (total - free - context) // MIB


def figures():
    """MiB: reserved, allocated, held of the device."""
    assert torch.cuda.memory_reserved() % MIB == torch.cuda.memory_allocated() % MIB == 0
    return [torch.cuda.memory_reserved() // MIB, torch.cuda.memory_allocated() // MIB, held()]


def files(folder):
    """Sizes in MiB of files without a name that this process has open there."""
    out = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + entry).startswith(folder):
                out.append(os.stat("/proc/self/fd/" + entry).st_size // MIB)
        except FileNotFoundError:  # of the listing itself
            pass
    return out


def addresses(*tensors):
    return [tensor.data_ptr() for tensor in tensors]


def refusal(call):
    """The error's class and the lines of its text."""
    try:
        call()
    except Exception as error:
        return [type(error).__name__, *str(error).splitlines()]
    return ["nothing"]


def scene(function):
    gc.collect()
    torch.cuda.empty_cache()
    seen[function.__name__] = dict(function())
    gc.collect()
    torch.cuda.empty_cache()
    seen[function.__name__]["left"] = figures()
    return function


ashlar.install("report_leaks:False")
torch.cuda.init()
context = 0
context = held() * MIB
base = block(20)  # awake, without a tag, the whole time


def kept(keep, **how):
    """Of 60 MiB: what is seen while they sleep, and after."""
    folder = tempfile.mkdtemp()
    with ashlar.tag("kept by " + keep):
        tensors = block(40), block(20)
    before = addresses(*tensors)
    out = {"awake": figures(), "returned": ashlar.sleep("kept by " + keep, keep=keep, folder=folder, **how) // MIB,
           "asleep": figures(), "files": files(folder), "names": os.listdir(folder),
           "is asleep": [ashlar.is_asleep(one) for one in (*tensors, base)]}
    ashlar.sleep("kept by " + keep, keep="nothing")  # it sleeps already
    ashlar.wake("kept by " + keep)
    tensors[0].fill_(1)
    torch.cuda.synchronize()
    out.update({"woken": figures(), "files after": files(folder), "in place": addresses(*tensors) == before,
                "is asleep after": [ashlar.is_asleep(one) for one in tensors]})
    os.rmdir(folder)
    return out


@scene
def keep_host():
    return kept("host")


@scene
def keep_file():
    return kept("file")


@scene
def keep_nothing():
    return kept("nothing")


@scene
def keep_host_up_to_a_limit():
    return kept("host", host_limit=10 * MIB)


@scene
def freed_asleep():
    with ashlar.tag("freed"):
        first, second, third = block(40), block(20), block(40)
    before = addresses(third)
    ashlar.sleep("freed")
    del first
    yield "one freed", figures()
    torch.cuda.empty_cache()
    yield "emptied", figures()
    ashlar.wake("freed")
    yield "woken", figures()
    yield "in place", addresses(third) == before
    ashlar.sleep("freed")
    del second, third
    yield "all freed", figures()
    ashlar.wake("freed")
    yield "woken again", figures()


@scene
def asked_asleep():
    with ashlar.tag("cache"):
        cache = block(40)
        ashlar.sleep("cache", keep="nothing")
        yield "allocate", refusal(lambda: block(20))
        yield "small", refusal(lambda: torch.empty(10, device="cuda"))
        outside = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(outside):
            yield "within another pool", block(20).numel() // MIB
    yield "record_stream", refusal(lambda: cache.record_stream(torch.cuda.Stream()))
    yield "without a tag", block(20).numel() // MIB
    yield "figures", figures()
    ashlar.wake("cache")
    with ashlar.tag("cache"):
        yield "after the wake", block(20).numel() // MIB
    yield "no such tag", refusal(lambda: ashlar.sleep("nobody"))


@scene
def no_memory_to_wake():
    with ashlar.tag("large"):
        large = block(120), block(60)
    before = addresses(*large)
    ashlar.sleep("large")
    asleep = figures()
    free = torch.cuda.mem_get_info()[0] // MIB
    fill = block((free - 100) // 20 * 20)
    filled = figures()
    yield "refusal", refusal(lambda: ashlar.wake("large"))[:2]
    yield "stays as it is", figures() == filled
    yield "asleep", [ashlar.is_asleep(one) for one in large]
    yield "still refused", refusal(lambda: ashlar.wake("large"))[0]
    del fill  # it is cached: a wake empties the cache
    ashlar.wake("large")
    yield "woken", [figures(), addresses(*large) == before]
    yield "asleep before", asleep


@scene
def by_tag():
    with ashlar.tag("first"):
        first = block(40)
        with ashlar.tag("second"):
            second = block(20)
            with ashlar.tag("first"):  # another pool of the tag
                inner = block(20)
    yield "tagged", [ashlar.tagged_bytes(name) // MIB for name in ("first", "second")]
    yield "returned", ashlar.sleep("first", keep="nothing") // MIB
    yield "asleep", [ashlar.is_asleep(one) for one in (first, second, inner)]
    yield "tagged asleep", [ashlar.tagged_bytes(name) // MIB for name in ("first", "second")]
    yield "snapshot", sum(one["total_size"] for one in torch.cuda.memory_snapshot()) // MIB
    ashlar.sleep("first", "second")
    yield "both", figures()
    ashlar.wake("second")
    yield "second woken", [ashlar.is_asleep(one) for one in (first, second, inner)]
    ashlar.wake()
    yield "all woken", [ashlar.is_asleep(one) for one in (first, second, inner)]


@scene
def everything():
    """The default pool, whose segments may be of cudaMalloc, is among it."""
    with ashlar.tag("some"):
        some = block(40)
    yield "refusal", refusal(ashlar.sleep)
    yield "asleep", [ashlar.is_asleep(one) for one in (some, base)]
    yield "figures", figures()
    ashlar.wake()
    yield "woken", [ashlar.is_asleep(one) for one in (some, base)]


@scene
def own_pool():
    """A MemPool of the program's, without a tag."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = block(40)
    yield "refusal", refusal(lambda: ashlar.sleep(pools=[pool.id]))
    yield "asleep", ashlar.is_asleep(inside)
    ashlar.wake(pools=[pool.id])
    yield "woken", figures()


@scene
def within_a_capture():
    with ashlar.tag("state"):
        state = block(20)
    graph, static = torch.cuda.CUDAGraph(), block(20)
    with torch.cuda.graph(graph):
        yield "sleep", refusal(lambda: ashlar.sleep("state"))
        yield "wake", refusal(lambda: ashlar.wake("state"))
        result = static + 1
    graph.replay()
    torch.cuda.synchronize()
    yield "asleep", [ashlar.is_asleep(one) for one in (state, result)]


@scene
def after_a_graph():
    """Captured in a pool without a tag, which keeps what is free for its replays."""
    with ashlar.tag("weights"):
        weights = block(20)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        between = weights + 1
        result = between * 2
        del between
    before = figures()
    ashlar.sleep("weights")
    yield "returned", before[0] - figures()[0]
    ashlar.wake("weights")
    graph.replay()
    torch.cuda.synchronize()
    yield "as it was", figures() == before
    yield "its pool", refusal(lambda: ashlar.sleep("weights", pools=[graph.pool()]))
    yield "asleep", [ashlar.is_asleep(one) for one in (weights, result)]
    ashlar.wake("weights", pools=[graph.pool()])
    graph.replay()
    torch.cuda.synchronize()
    yield "as it was after that", figures() == before


@scene
def registered():
    with ashlar.tag("shared"):
        shared = block(40)
    ashlar.register_range(shared)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield "returned", ashlar.sleep("shared") // MIB
    yield "told", [str(one.message) for one in told]
    ashlar.unregister_range(shared)
    yield "returned after that", ashlar.sleep("shared", keep="nothing") // MIB
    ashlar.wake("shared")


@scene
def many_times():
    with ashlar.tag("often"):
        often = block(20), torch.empty(MIB, dtype=torch.uint8, device="cuda")
    before, open_files = figures(), len(os.listdir("/proc/self/fd"))
    for turn in range(100):
        ashlar.sleep("often", keep=("host", "file", "nothing")[turn % 3])
        ashlar.wake("often")
    yield "as before", [figures() == before, len(os.listdir("/proc/self/fd")) == open_files, len(often)]


@scene
def a_graph_in_a_tagged_pool():
    with ashlar.tag("graphs"):
        kept = block(20)
    pool = next(iter(ashlar._tags.segments("graphs")))["segment_pool_id"]
    graph = torch.cuda.CUDAGraph()

    def capture():
        graph.capture_begin(pool=tuple(pool))
        graph.capture_end()

    with torch.cuda.stream(torch.cuda.Stream()):
        yield "refusal", refusal(capture)
    del kept


tell("torch_sleep", interface=ashlar.interface(), seen=seen)
