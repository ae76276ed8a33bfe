"""A page made small, so that a notebook stays small: without the runs of what-ifs, then the recorded ones at fewer moments,
and of stacks with frames of Python those alone.

    for page in smaller(page.html, 40_000): ...     # of the same answer, each smaller than the one before

Those that are surely longer than so many characters are left out.

What is kept is exact (docs/internals/page.md has the format): the moments that the explanation names, and of each of equally
long stretches those where allocated and reserved memory are lowest and highest, with every block of these moments. The page
says by itself how many moments it has.
"""

import array
import base64
import bisect
import gzip
import itertools
import json
import math
import re
import zlib
from typing import Any, Dict, Iterator, List, Sequence, Tuple

SCRIPT = re.compile(r'(<script type="application/json" id="ashlar-document">)(.*?)(</script>)', re.DOTALL)
BLOB = re.compile(r'<script type="application/octet-stream" id="ashlar-blob-\d+">([^<]*)</script>\n?')
MOMENTS = (1000, 500, 250, 170, 120, 90, 60)  # 1,000 look like all on a screen
TYPES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f64": "d"}
NONE = 0xFFFFFFFF  # an index of nothing
DEEPEST = 12  # frames of a stack without Python
LONGEST = 2 << 20  # characters of the recorded runs' columns: more would take long
Columns = Dict[str, List[int]]


def smaller(page: str, longest: int) -> Iterator[str]:
    text = SCRIPT.search(page)
    if text is None:
        return
    blobs = BLOB.findall(page)
    recorded = {number: run["columns"] for number, run in enumerate(json.loads(text[2])["runs"]) if run["kind"] == "observed"}
    length = sum(len(blobs[blob]) for blob in {column["blob"] for columns in recorded.values() for column in columns.values()})
    if length > LONGEST:
        return
    unpacked = {number: _unpacked(columns, blobs) for number, columns in recorded.items()}
    rest = BLOB.sub("", page)
    for most in (*((None,) if length < longest else ()), *MOMENTS):
        document = json.loads(text[2])
        runs = [_Run(document, number, dict(columns)) for number, columns in unpacked.items()]
        for run in runs:
            if most is not None:
                run.thin(most)
                _shorten_stacks(run.input["stacks"])
        yield _written(rest, document, runs)


def _unpacked(places: Dict[str, Any], blobs: Sequence[str]) -> Columns:
    """Without the sums of several moments, which the page makes where it has none."""
    names = {name: column for name, column in places.items() if ".min." not in name and ".max." not in name}
    bytes_of = {blob: gzip.decompress(base64.b64decode(blobs[blob])) for blob in {column["blob"] for column in names.values()}}
    return {name: _values(column, bytes_of[column["blob"]]) for name, column in names.items()}


class _Run(object):
    """A run of the page with its columns unpacked."""

    def __init__(self, document: Any, number: int, columns: Columns) -> None:
        self.number, self.columns = number, columns
        self.run = document["runs"][number]
        self.input = document["inputs"][self.run["input"]]

    def thin(self, most: int) -> None:
        run = self.run
        if run["moment_count"] <= most:
            return
        kept = self._kept(most)
        self._move_names(kept)
        before, run["moment_count"], run["is_thinned"] = run["moment_count"], len(kept), True
        for name, values in self.columns.items():
            if "." not in name and len(values) == before:
                self.columns[name] = [values[moment] for moment in kept]
        self._thin_blocks(kept)
        self._thin_segments(kept)

    def _kept(self, most: int) -> List[int]:
        run, count = self.run, self.run["moment_count"]
        kept = {0, count - 1, run["verdict_moment"], *run["failures"], *(peak["moment"] for peak in run["peaks"].values())}
        kept.update(cause["moment"] for cause in self.input["causes"])
        kept.update(named["moment"] for named in self.input["evidence_moments"])
        parts = [moment for part in _parts_of(run) for moment in part]
        if len(parts) <= most // 4:
            kept.update(parts)
        stretches = most // 4
        for begin, end in ((i * count // stretches, (i + 1) * count // stretches) for i in range(stretches)):
            for values in (self.columns["allocated"], self.columns["reserved"]):
                kept.add(min(range(begin, end), key=values.__getitem__))
                kept.add(max(range(begin, end), key=values.__getitem__))
        return sorted(moment for moment in kept if moment < count)

    def _move_names(self, kept: List[int]) -> None:
        """What names a moment names the first that is kept from there on."""
        run = self.run
        run["verdict_moment"] = _since(kept, run["verdict_moment"])
        run["failures"] = [_since(kept, moment) for moment in run["failures"]]
        if run["projected_from"] is not None:
            run["projected_from"] = _since(kept, run["projected_from"])
        run["steps"] = [[_since(kept, moment) for moment in step] for step in run["steps"]]
        for phase in run["phases"]:
            phase["begin"], phase["end"] = _since(kept, phase["begin"]), _since(kept, phase["end"])
        for named in (*run["peaks"].values(), *self.input["causes"], *self.input["evidence_moments"]):
            named["moment"] = min(_since(kept, named["moment"]), len(kept) - 1)

    def _thin_blocks(self, kept: List[int]) -> None:
        columns = self.columns
        for name in ("block.alloc", "block.freed", "block.done"):
            columns[name] = [_since(kept, moment) for moment in columns.get(name, ())]
        stays = [number for number, (alloc, done) in enumerate(zip(columns["block.alloc"], columns["block.done"])) if alloc < done]
        self._pick("block.", stays)
        places = {number: place for place, number in enumerate(stays)}
        for cause in self.input["causes"]:
            cause["blocks"] = [places[number] for number in cause["blocks"] if number in places]

    def _thin_segments(self, kept: List[int]) -> None:
        columns = self.columns
        starts, ends = columns.get("segment.extent", [0]), [_since(kept, moment) for moment in columns.get("segment.end", ())]
        moments = [_since(kept, moment) for moment in columns.get("extent.moment", ())]
        columns["segment.end"], columns["extent.moment"] = ends, moments
        stays: List[int] = []
        extents: List[int] = []
        begins = [0]
        for segment, end in enumerate(ends):
            own = range(starts[segment], starts[segment + 1])
            seen = [one for one in own if moments[one] < end and (one + 1 not in own or moments[one + 1] > moments[one])]
            if seen:
                stays.append(segment)
                extents += seen
                begins.append(len(extents))
        del columns["segment.extent"]
        self._pick("segment.", stays)
        self._pick("extent.", extents)
        columns["segment.extent"] = begins

    def _pick(self, kind: str, places: Sequence[int]) -> None:
        for name, values in self.columns.items():
            if name.startswith(kind):
                self.columns[name] = [values[place] for place in places]


def _parts_of(run: Any) -> Iterator[Tuple[int, int]]:
    yield from (tuple(step) for step in run["steps"])
    yield from ((phase["begin"], phase["end"]) for phase in run["phases"])


def _since(kept: List[int], moment: int) -> int:
    return bisect.bisect_left(kept, moment)


def _written(rest: str, document: Any, runs: Sequence[_Run]) -> str:
    numbers = {run.number: place for place, run in enumerate(runs)}
    document["runs"] = [run.run for run in runs]
    for one in document["inputs"]:
        one["runs"] = [numbers[run] for run in one["runs"] if run in numbers]
    blobs = ""
    for place, run in enumerate(runs):
        _drop_stacks(run)
        run.run["columns"], blob = _packed(run.columns, place)
        blobs += f'<script type="application/octet-stream" id="ashlar-blob-{place}">{blob}</script>\n'
    index = json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return SCRIPT.sub(lambda found: f"{found[1]}{index}{found[3]}\n{blobs}", rest, count=1)


def _drop_stacks(run: _Run) -> None:
    """Those that nothing names any more, and their frames."""
    stacks, columns = run.input["stacks"], run.columns
    named = [columns.get("block.stack", []), columns.get("segment.stack", []), *(cause["stacks"] for cause in run.input["causes"])]
    used = sorted({stack for stacks in named for stack in stacks if stack != NONE})
    starts, frames = stacks["starts"], stacks["stack_frames"]
    paths = [frames[starts[stack]:starts[stack + 1]] for stack in used]
    used_frames = sorted({frame for path in paths for frame in path})
    of_stack = {NONE: NONE, **{stack: place for place, stack in enumerate(used)}}
    of_frame = {frame: place for place, frame in enumerate(used_frames)}
    run.input["stacks"] = {
        "labels": [stacks["labels"][stack] for stack in used], "frames": [stacks["frames"][frame] for frame in used_frames],
        "starts": [0, *itertools.accumulate(len(path) for path in paths)],
        "stack_frames": [of_frame[frame] for path in paths for frame in path]}
    for name in ("block.stack", "segment.stack"):
        if name in columns:
            columns[name] = [of_stack[stack] for stack in columns[name]]
    for cause in run.input["causes"]:
        cause["stacks"] = [of_stack[stack] for stack in cause["stacks"]]


def _shorten_stacks(stacks: Any) -> None:
    frames, starts = stacks["frames"], [0]
    path: List[int] = []
    is_python = [file.endswith(".py") or file.startswith("<") for file, _, _ in frames]
    for begin, end in zip(stacks["starts"], stacks["starts"][1:]):
        whole = stacks["stack_frames"][begin:end]
        path += [frame for frame in whole if is_python[frame]] or whole[:DEEPEST]
        starts.append(len(path))
    stacks["starts"], stacks["stack_frames"] = starts, path


def _values(column: Any, blob: bytes) -> List[int]:
    raw = array.array(TYPES[column["type"]])
    raw.frombytes(blob[column["offset"]:column["offset"] + column["count"] * raw.itemsize])
    base, scale = int(column["base"]), int(column["scale"])
    return [base + scale * int(value) for value in (itertools.accumulate(raw) if column["delta"] else raw)]


def _packed(columns: Columns, blob: int) -> Tuple[Dict[str, Any], str]:
    """The columns' places in a blob, and that."""
    out = bytearray()
    places: Dict[str, Any] = {}
    for name, values in columns.items():
        out += bytes(-len(out) % 8)
        deltas = [0, *(after - before for before, after in zip(values, values[1:]))][:len(values)]
        least = min(values, default=0)
        plain, differences = _column(least, [value - least for value in values]), _column(values[0] if values else 0, deltas)
        is_delta = len(zlib.compress(differences[1])) < len(zlib.compress(plain[1]))
        facts, packed = differences if is_delta else plain
        places[name] = {"blob": blob, "offset": len(out), "count": len(values), "delta": is_delta, **facts}
        out += packed
    return places, base64.b64encode(gzip.compress(bytes(out), mtime=0)).decode()


def _column(base: int, raw: List[int]) -> Tuple[Dict[str, Any], bytes]:
    scale = max(1, math.gcd(*raw))
    raw = [value // scale for value in raw]
    kind = next(kind for kind in TYPES if kind == "f64" or _holds(kind, raw))
    numbers: Any = raw
    return {"type": kind, "base": base, "scale": scale}, array.array(TYPES[kind], numbers).tobytes()


def _holds(kind: str, raw: List[int]) -> bool:
    bits = 8 * array.array(TYPES[kind]).itemsize
    low, high = (0, 2 ** bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return low <= min(raw, default=0) and max(raw, default=0) <= high
