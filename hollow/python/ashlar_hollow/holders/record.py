"""The record that a snapshot keeps under "ashlar_names": each live block with its one owner and its other names.

docs/schemas/names.schema.json describes it. Blocks that nobody named are told apart by what the allocator knows of them.
"""

import bisect
import ctypes

from . import roots
from .calls import newest_allocations
from .lying import c_function
from .traits import PART
from .walk import GRAPH

KEY, PEAK_KEY = "ashlar_names", "ashlar_peak_names"
OUT_OF_MEMORY, PEAK = "out_of_memory", "peak"  # moments
VERSION = 1
POOL, WORKSPACE, TEMPORARY, BUCKET, NOT_FOUND = "graph_pool", "workspace", "temporary", "bucket", "not_found"
AUTOCAST_CACHE = "autocast_cache"
MOST_ESCAPED = 400
MANY_FUNCTIONS = 3  # alike: what holds them has grown, and not what one of them closes over
MOST_VARIABLES = 6
LIVE = "active_allocated"
OWN_SIZE = 8519680  # of a workspace before compute capability 9.0: 2 x 4 MiB + 8 x 16 KiB. From there on it is 32 MiB, as much else is
_is_given = c_function("ashlar_hollow_is_workspace", ctypes.c_bool, ctypes.c_uint64, ctypes.c_uint64)  # of a hollow device


class Blocks(object):
    """The live blocks of a snapshot by address. `calls`: those under way (calls.Calls)."""

    def __init__(self, snapshot, calls):
        found = []
        for segment in snapshot.get("segments", ()):
            address = segment.get("address", 0)
            for block in segment.get("blocks", ()):
                start = block.get("address", address)
                address = start + block["size"]
                if block.get("state") == LIVE:
                    found.append((start, block["size"], segment, block))
        found.sort(key=lambda one: one[0])
        self.all = found
        self.calls = calls
        self.newest = newest_allocations(snapshot, calls)
        self.starts = [one[0] for one in found]

    def __len__(self):
        return len(self.all)

    def at(self, address):
        """The index of the block that holds the address; None: no live block does."""
        index = bisect.bisect_right(self.starts, address) - 1
        if index < 0 or address >= self.starts[index] + self.all[index][1]:
            return None
        return index

    def is_explained(self, index):
        """Whether it needs no variable to be explained."""
        return self.unnamed(index)[0] != NOT_FOUND

    def unnamed(self, index):
        start, _, segment, block = self.all[index]
        if self.is_workspace(index):
            return WORKSPACE, "workspace of cuBLAS", _place(block.get("frames") or ())
        is_newest = self.newest is None or start in self.newest
        return unnamed(segment, block, self.calls, is_newest)

    def is_workspace(self, index):
        """By its size where nobody else asks for that, else by the call that gave it to cuBLAS, or by the calls of C++ that made it,
        where the history has them: at::cuda::getNewWorkspace and its like.
        """
        start, _, _, block = self.all[index]
        size = self.bytes_of(index)
        if size == OWN_SIZE or (_is_given is not None and _is_given(start, size)):
            return True
        names = [frame["name"] for frame in block.get("frames") or ()]
        return any(one.startswith("at::cuda::") and "Workspace" in one for one in names)

    def bytes_of(self, index):
        """As the program asked for them."""
        return self.all[index][3].get("requested_size") or self.all[index][1]


def escaped(text):
    """Text that a terminal may print."""
    shown = text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return shown[:MOST_ESCAPED]


class Record(object):
    """Collects holders: one for each kind, name and place."""

    def __init__(self, walk, blocks):
        self.walk, self.blocks = walk, blocks
        self.holders, self.indexes = [], {}
        self.hooked = walk.traits.nodes_of_hooks(walk.seen)
        self.inner = {}  # (name, file, line) of a variable of functions or generators -> its nodes
        for claims in walk.claims.values():
            node = walk.root_node(min(claims)[1])
            if node >= 0 and walk.parents[node] >= 0:
                self.inner.setdefault(_place_of(walk.labels[node]), set()).add(node)

    def keeper_of(self, node):
        """The node of what holds an error, or many functions alike, through which a block is held; -1: neither."""
        walk = self.walk
        keeper = walk.error_of(node)
        if keeper < 0:
            node = walk.root_node(node)
            if node >= 0 and len(self.inner.get(_place_of(walk.labels[node]), ())) >= MANY_FUNCTIONS:
                keeper = walk.parents[node]
        return keeper

    def owner(self, node, index):
        holder, variable = self.of_node(node, index)
        self._add_traits(holder, node, index, variable)
        count = self.walk.nodes_of_graph.pop(node, 0)
        if count:
            holder["nodes"] = holder.get("nodes", 0) + count
        return holder

    def of_node(self, node, index):
        """The holder and, where it keeps frames or functions, the variable of these.

        `index`: of the block. What has no variable is told by the line that allocated the block.
        """
        walk = self.walk
        variable, keeper = None, self.keeper_of(node)
        if keeper >= 0 and walk.name_of(keeper):
            variable = walk.root_of(node)
        root = walk.root_of(keeper if variable is not None else node)
        kind, name = walk.kind_of(node), walk.name_of(keeper if variable is not None else node)
        if variable is not None and kind == GRAPH:
            kind = walk.kind_of(walk.root_node(node))
        if root is None or root.kind == roots.UNSEEN_HOLDER:
            place = _place(self.blocks.all[index][3].get("frames") or ())
        else:
            place = root.file, root.line, root.function
        return self.holder(kind, name, place), variable

    def _add_traits(self, holder, node, index, variable):
        walk, traits = self.walk, self.walk.traits
        modes = walk.modes_of_graph.get(node) or {traits.is_training(walk, node)}
        mode = _mode(modes)
        if mode is not None:
            holder["mode"] = mode if holder.get("mode", mode) == mode else "mixed"
        container = traits.container_of(walk, node)
        if container is not None:
            holder["container"] = container
        found = set(holder.get("traits", ()))
        found.update(traits.of(walk, node, self.hooked))
        if index in traits.optimized:
            found.add("optimized")
        if holder["blocks"] == 0 and node in walk.parts:
            found.add(PART)
        elif node not in walk.parts:
            found.discard(PART)  # of all its blocks or of none
        if found:
            holder["traits"] = sorted(found)
        else:
            holder.pop("traits", None)
        if variable is not None:
            names = holder.setdefault("variables", [])
            shown = escaped(walk.variable_of(variable))
            if shown not in names and len(names) < MOST_VARIABLES:
                names.append(shown)

    def holder(self, kind, name, place=(None, None, None)):
        hidden = self.walk.redaction
        key = (kind, name) + place
        index = self.indexes.get(key)
        if index is None:
            index = self.indexes[key] = len(self.holders)
            file, line, function = place
            made = {"kind": kind, "name": escaped(name), "bytes": 0, "blocks": 0}
            if file:
                made["file"] = escaped(file if hidden is None else hidden.file(file))
            if line:
                made["line"] = line
            if function:
                made["function"] = escaped(function if hidden is None else hidden.function(function, file))
            self.holders.append(made)
        return self.holders[index]


def make(walk, blocks, when):
    """{"holders", "blocks", ...}: the bytes of the holders sum to those of the live blocks."""
    record = Record(walk, blocks)
    listed = []
    positions = {}
    casts = walk.castable.cast(blocks, walk.claims)
    for index in range(len(blocks)):
        claims = sorted(walk.claims.get(index, ()))
        if claims:
            owner = record.owner(claims[0][1], index)
        elif index in casts:
            owner = record.holder(AUTOCAST_CACHE, "casts of weights that autocast keeps")
        else:
            owner = record.holder(*blocks.unnamed(index))
        others = []
        for _, node in claims[1:]:
            other, _ = record.of_node(node, index)
            if other is not owner and other not in others:
                others.append(other)
        owner["bytes"] += blocks.bytes_of(index)
        owner["blocks"] += 1
        for one in [owner] + others:
            positions.setdefault(id(one), len(positions))
        listed.append([blocks.starts[index], positions[id(owner)], [positions[id(one)] for one in others]])
    ordered = sorted(record.holders, key=lambda one: positions[id(one)])
    return {
        "version": VERSION,
        "when": when,
        "seconds": 0.0,
        "objects": len(walk.seen),
        "bound": walk.bound,
        "unread_frames": walk.unread_frames,
        "follows_graphs": walk.follows_graphs,
        "live_bytes": sum(blocks.bytes_of(index) for index in range(len(blocks))),
        "holders": ordered,
        "blocks": listed,
    }


def _place_of(root):
    return root.name, root.file, root.line


def _mode(modes):
    modes = {one for one in modes if one is not None}
    if not modes:
        return None
    return "mixed" if len(modes) > 1 else "train" if True in modes else "eval"


# --- blocks without a name ---


def unnamed(segment, block, calls, is_newest=True):
    """(kind, name, place) of a block that no object of the program leads to."""
    frames = block.get("frames") or ()
    place = _place(frames)
    if tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0):
        return POOL, "memory pool of a CUDA graph", place
    if any(frame["filename"].endswith("torch/nn/parallel/distributed.py") for frame in frames[:3]):
        return BUCKET, "bucket of DistributedDataParallel", place
    at_work = calls.of(frames) if is_newest else None
    if at_work is not None:
        return TEMPORARY, "temporary of the %s at work" % at_work, place
    return NOT_FOUND, "not found", place


def _place(frames):
    """Where it was allocated: the innermost line of the program itself, else the innermost."""
    for frame in frames:
        if not roots.is_library(frame["filename"]):
            return frame["filename"], frame["line"], frame["name"]
    return (frames[0]["filename"], frames[0]["line"], frames[0]["name"]) if frames else (None, None, None)
