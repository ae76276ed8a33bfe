"""Blocks that side streams use while a graph is captured, without graph_capture_record_stream_reuse and with it: where each
block lies, and the figures."""

import torch
from tell import tell

MIB = 1 << 20


class Scene:
    """One capture. Blocks by name; where each lies is told against the first."""

    def __init__(self, streams, pool=None):
        self.side = streams
        self.graph = torch.cuda.CUDAGraph()
        self.capture = torch.cuda.graph(self.graph, pool=pool)
        self.kept = []
        self.places = []

    def __enter__(self):
        self.capture.__enter__()
        self.main = torch.cuda.current_stream()
        return self

    def __exit__(self, *error):
        self.capture.__exit__(*error)

    def block(self, mib=8):
        tensor = torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
        self.places.append(tensor.data_ptr())
        tensor.fill_(1)
        return tensor

    def keep(self, mib=8):
        self.kept.append(self.block(mib))

    def use(self, tensor, *streams):
        """Each stream works on it after what came before on this one."""
        here = torch.cuda.current_stream()
        for stream in streams:
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                tensor.add_(1)
            tensor.record_stream(stream)

    def join(self, *streams):
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)


def joined(streams, outside):
    with Scene(streams) as scene:
        used = scene.block()
        scene.use(used, streams[0])
        del used
        scene.keep()
        scene.join(streams[0])
        scene.keep()
        scene.keep()
    return scene


def in_part(streams, outside):
    with Scene(streams) as scene:
        used = scene.block()
        scene.use(used, *streams)
        del used
        scene.join(streams[0])
        scene.keep()
        scene.join(streams[1])
        scene.keep()
    return scene


def of_the_side(streams, outside):
    """The block is of the side stream, and the main one uses it."""
    with Scene(streams) as scene:
        side = streams[0]
        side.wait_stream(scene.main)
        with torch.cuda.stream(side):
            used = scene.block()
        scene.main.wait_stream(side)
        used.add_(1)
        used.record_stream(scene.main)
        del used
        with torch.cuda.stream(side):
            scene.keep()
        side.wait_stream(scene.main)
        with torch.cuda.stream(side):
            scene.keep()
        scene.main.wait_stream(side)
    return scene


def not_captured(streams, outside):
    """A stream that never works in the graph."""
    with Scene(streams) as scene:
        used = scene.block()
        used.record_stream(outside)
        del used
        scene.keep()
    return scene


def many(streams, outside):
    with Scene(streams) as scene:
        for turn in range(12):
            used = [scene.block(4 + turn % 3) for _ in range(3)]
            for tensor, stream in zip(used, (streams[turn % 2], streams[0], streams[1])):
                scene.use(tensor, stream)
            del used, tensor
            if turn % 4 == 3:
                scene.join(*streams)
            if turn % 5 == 0:
                scene.keep(2)
        scene.join(*streams)
        scene.keep(6)
    return scene


def from_before(streams, outside):
    """A block of the default pool is used and freed within."""
    early = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
    with Scene(streams) as scene:
        scene.use(early, streams[0])
        del early
        scene.join(streams[0])
        scene.keep()
    return scene


def two_graphs(streams, outside):
    first = joined(streams, outside)
    with Scene(streams, pool=first.graph.pool()) as scene:
        used = scene.block()
        scene.use(used, streams[1])
        del used
        scene.join(streams[1])
        scene.keep()
        scene.keep()
    scene.kept.append(first)
    return scene


def figures():
    torch.empty(1, device="cuda")  # what waited for the end of the capture is free at the next request
    stats = torch.cuda.memory_stats()
    return [stats[f"{name}.all.{kind}"] for name in ("allocated_bytes", "active_bytes", "reserved_bytes", "allocation")
            for kind in ("current", "peak", "allocated", "freed")]


SCENES = [joined, in_part, of_the_side, not_captured, many, from_before, two_graphs]

if __name__ == "__main__":
    torch.zeros(1, device="cuda").add_(1)  # what CUDA needs, before a capture
    outside, streams = torch.cuda.Stream(), [torch.cuda.Stream() for _ in range(2)]
    answers, blocks = {}, {}
    for setting in (False, True):
        torch.cuda.memory._set_allocator_settings(f"graph_capture_record_stream_reuse:{setting}")
        for run in SCENES:
            torch.cuda.empty_cache()
            scene = run(streams, outside)
            name = f"{run.__name__} {setting}"
            answers[name] = ([place - scene.places[0] for place in scene.places], figures())
            blocks[name] = len(set(scene.places))
            del scene
    served = [run.__name__ for run in SCENES if blocks[f"{run.__name__} True"] < blocks[f"{run.__name__} False"]]
    assert served == ["joined", "in_part", "of_the_side", "many", "two_graphs"], served
    tell("torch_captures", answers=answers)
