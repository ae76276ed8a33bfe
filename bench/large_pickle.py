#!/usr/bin/env python3
"""Writes a memory snapshot of any length as PyTorch writes it, without holding it.

    bench/large_pickle.py 10000000 large.pickle    10 million events, about 2 GB

Entry for entry it is what torch.cuda.memory._dump_snapshot and Python's pickler (protocol 4) make: batches of 1000
items, a frame of the pickle each 64 KiB, keys and frames shared by memo, one list of frames for an allocation and its
free. The run is a training: weights stay, activations come and go, segments are never returned.
"""

import random
import struct
import sys

BATCH = 1000
FRAME_BYTES = 65536
SEGMENT = 20 << 20
BLOCK_SIZES = [512, 1024, 2048, 4096, 8192, 65536, 262144, 2 << 20]


class Pickler:
    """The opcodes as CPython's pickler chooses them, framed."""

    def __init__(self, out):
        self.out, self.frame, self.frame_bytes, self.memo, self.texts = out, [], 0, 0, {}
        out.write(b"\x80\x04")

    def put(self, data):
        self.frame.append(data)
        self.frame_bytes += len(data)
        if self.frame_bytes >= FRAME_BYTES:
            self.flush()

    def flush(self):
        data = b"".join(self.frame)
        self.out.write(b"\x95" + struct.pack("<Q", len(data)) + data)
        self.frame, self.frame_bytes = [], 0

    def memoize(self):
        self.memo += 1
        return self.memo - 1

    @staticmethod
    def get(index):
        return b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)

    def text(self, text):
        """A shared string: in full at first."""
        if text in self.texts:
            return self.get(self.texts[text])
        self.texts[text] = self.memoize()
        data = text.encode()
        return b"\x8c" + bytes([len(data)]) + data + b"\x94"

    @staticmethod
    def number(value):
        if 0 <= value < 256:
            return b"K" + bytes([value])
        if 0 <= value < 65536:
            return b"M" + struct.pack("<H", value)
        if -(1 << 31) <= value < 1 << 31:
            return b"J" + struct.pack("<i", value)
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(data)]) + data

    def dict_begin(self):
        index = self.memoize()
        return b"}\x94(", index


class Frames:
    """Call stacks of 70 frames: the frames are dicts that all stacks share."""

    def __init__(self, pickler, seed=7):
        self.pickler, rng = pickler, random.Random(seed)
        self.written = {}
        self.stacks = [[rng.randrange(40 if depth < 20 else 400) for depth in range(70)] for _ in range(300)]

    def frame(self, number):
        if number in self.written:
            return self.pickler.get(self.written[number])
        begin, self.written[number] = self.pickler.dict_begin()
        text, count = self.pickler.text, self.pickler.number
        return b"".join([begin, text("name"), text(f"forward_{number}"), text("filename"),
                         text(f"/opt/model/layers/block_{number}.py"), text("line"), count(number), b"u"])

    def stack(self, number):
        index = self.pickler.memoize()
        return b"]\x94(" + b"".join([self.frame(n) for n in self.stacks[number]]) + b"e", index


class Run:
    """Live blocks by address: sizes of a power of two, each in places of its own size."""

    def __init__(self, seed=11):
        self.rng, self.free, self.live, self.next, self.segments = random.Random(seed), {}, [], 0x7F0000000000, []

    def segment(self, size):
        begin, self.next = self.next, self.next + SEGMENT
        self.segments.append((begin, size))
        self.free.setdefault(size, []).extend(range(begin + SEGMENT - size, begin - 1, -size))
        return begin


def entries(run, count):
    """(action, address, size, stack of an allocation or None, allocation whose stack it shares or None)"""
    made, keys = 0, {}
    while made < count:
        if run.live and (len(run.live) > 4000 or run.rng.random() < 0.45):
            at = run.rng.randrange(len(run.live))
            run.live[at], run.live[-1] = run.live[-1], run.live[at]
            address, size = run.live.pop()
            run.free[size].append(address)
            for action in ("free_requested", "free_completed"):
                yield action, address, size, None, keys[address]
            made += 2
            continue
        size = run.rng.choice(BLOCK_SIZES)
        if not run.free.get(size):
            yield "segment_alloc", run.segment(size), SEGMENT, run.rng.randrange(300), None
            made += 1
        address = run.free[size].pop()
        run.live.append((address, size))
        keys[address] = [None]
        yield "alloc", address, size, run.rng.randrange(300), keys[address]
        made += 1


def write_entry(pickler, frames, entry, time_us):
    action, address, size, stack, shared = entry
    text, number = pickler.text, pickler.number
    begin, _ = pickler.dict_begin()
    parts = [begin, text("action"), text(action), text("addr"), number(address), text("size"), number(size),
             text("stream"), number(0), text("time_us"), number(time_us), text("compile_context"), text("N/A"),
             text("user_metadata"), text(""), text("pool_id"), b"K\x00K\x00\x86\x94"]
    pickler.memoize()  # the pair
    parts.append(text("frames"))
    if stack is None:
        parts.append(pickler.get(shared[0]))
    else:
        data, index = frames.stack(stack)
        parts.append(data)
        if shared is not None:
            shared[0] = index
    parts.append(b"u")
    pickler.put(b"".join(parts))


def write_trace(pickler, frames, run, count):
    pickler.memoize()
    pickler.put(pickler.text("device_traces") + b"]\x94")
    pickler.memoize()
    pickler.put(b"]\x94")
    time_us, in_batch = 1_700_000_000_000_000, 0
    for entry in entries(run, count):
        pickler.put(b"(" if in_batch == 0 else b"")
        write_entry(pickler, frames, entry, time_us)
        time_us, in_batch = time_us + 7, (in_batch + 1) % BATCH
        if in_batch == 0:
            pickler.put(b"e")
    pickler.put((b"e" if in_batch else b"") + b"a")


def write_segments(pickler, run):
    live = {address: size for address, size in run.live}
    text, number = pickler.text, pickler.number
    pickler.put(text("segments"))
    pickler.memoize()
    pickler.put(b"]\x94(")
    for begin, size in run.segments:
        dict_begin, _ = pickler.dict_begin()
        held = sum(1 for at in range(begin, begin + SEGMENT, size) if at in live) * size
        pickler.put(b"".join([
            dict_begin, text("device"), number(0), text("address"), number(begin), text("total_size"), number(SEGMENT),
            text("stream"), number(0), text("segment_type"), text("large" if size > 1 << 20 else "small"),
            text("allocated_size"), number(held), text("active_size"), number(held), text("requested_size"),
            number(held), text("is_expandable"), b"\x89", text("segment_pool_id"), b"K\x00K\x00\x86\x94"]))
        pickler.memoize()
        pickler.put(text("blocks"))
        pickler.memoize()
        pickler.put(b"]\x94(")
        free_from = None
        end = begin + SEGMENT
        for at in range(begin, end + 1, size):
            is_live = at < end and at in live
            if (is_live or at == end) and free_from is not None:
                write_block(pickler, free_from, at - free_from, 0, "inactive")
                free_from = None
            if is_live:
                write_block(pickler, at, size, size, "active_allocated")
            elif free_from is None:
                free_from = at
        pickler.put(b"eu")
    pickler.put(b"e")


def write_block(pickler, address, size, requested, state):
    begin, _ = pickler.dict_begin()
    text, number = pickler.text, pickler.number
    pickler.put(b"".join([begin, text("address"), number(address), text("size"), number(size), text("requested_size"),
                          number(requested), text("state"), text(state), b"u"]))


def main():
    if len(sys.argv) != 3 or not sys.argv[1].isdigit():
        sys.exit("use: large_pickle.py EVENTS OUT.pickle")
    with open(sys.argv[2], "wb") as out:
        pickler = Pickler(out)
        pickler.memoize()
        pickler.put(b"}\x94(")
        run = Run()
        write_trace(pickler, Frames(pickler), run, int(sys.argv[1]))
        write_segments(pickler, run)
        pickler.put(b"u.")
        pickler.flush()


if __name__ == "__main__":
    main()
