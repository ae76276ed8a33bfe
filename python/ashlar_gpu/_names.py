"""names: who holds each live byte of PyTorch's allocator, by its Python name.

    print(ashlar_gpu.names())                    # now, in this process: also in a notebook
    ashlar_gpu.names("snapshot.pickle")          # adds it to a snapshot that this process wrote

Nothing of the program is run, and nothing is allocated on the device. The GIL is held meanwhile: other threads wait.
Thread rule: any thread.
"""

import dataclasses
import os
import pickle
import sys
from typing import Any, Dict, List, Optional, Tuple

from ashlar_gpu import _cells, _holders, _observer
from ashlar_gpu._errors import Error
from ashlar_gpu._sources import Path

SHOWN = 20


@dataclasses.dataclass(frozen=True)
class Holder:
    """What holds some of the bytes: a variable, or what stands for one. `kind` is as docs/schemas/names.schema.json has it."""

    kind: str
    name: str
    bytes: int
    blocks: int
    file: Optional[str] = None
    line: Optional[int] = None
    function: Optional[str] = None
    nodes: Optional[int] = None  # of a graph
    mode: Optional[str] = None  # of modules: "train", "eval" or "mixed"
    container: Optional[str] = None  # of an element: the type of what holds it
    traits: Tuple[str, ...] = ()
    variables: Tuple[str, ...] = ()  # of the frames or functions that it keeps

    @property
    def place(self) -> str:
        """Where the variable is: "train.py:31 train()"; empty where that is not known."""
        if self.file is None:
            return ""
        line = "" if self.line is None else f":{self.line}"
        called = "" if self.function in (None, "<module>") else f" {self.function}()"
        return os.path.basename(self.file) + line + called

    def __str__(self) -> str:
        of = f" (graph of {self.nodes:,} nodes)" if self.nodes else ""
        of += f" (by {', '.join(self.variables)})" if self.variables else ""
        where = f" in {self.place}" if self.place else ""
        return f"{self.kind.replace('_', ' ')} {self.name}{of}{where}"


@dataclasses.dataclass(frozen=True, repr=False)
class Names:
    """Each live byte has one of `holders`, the largest first; what nobody was found for is of kind "not_found"."""

    holders: Tuple[Holder, ...]
    live_bytes: int
    seconds: float
    bound: Optional[str]  # what ended the walk early, "time" or "objects": some names are missing then
    json: Dict[str, Any]  # by docs/schemas/names.schema.json
    dropped: int = 0  # blocks of a name that are not live in the file

    @property
    def named_bytes(self) -> int:
        return self.live_bytes - sum(one.bytes for one in self.holders if one.kind == "not_found")

    def __str__(self) -> str:
        share = 100 * self.named_bytes / self.live_bytes if self.live_bytes else 100
        lines = [f"WHO HOLDS {_mib(self.live_bytes)}   ({share:.1f} % has a name; {self.seconds:.1f} s)"]
        lines += [f"  {_mib(one.bytes):>14}  in {one.blocks:6,} blocks  {one}" for one in self.holders[:SHOWN]]
        rest = self.holders[SHOWN:]
        if rest:
            lines.append(f"  {_mib(sum(one.bytes for one in rest)):>14}  in {sum(one.blocks for one in rest):6,} blocks  "
                         f"{len(rest)} more")
        if self.bound is not None:
            lines.append(f"  some names are missing: the walk met its bound of {self.bound}")
        if self.dropped:
            lines.append(f"  {self.dropped:,} blocks with a name are not live in the file")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Names: {len(self.holders)} holders of {_mib(self.live_bytes)}>"

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


def _mib(count: int) -> str:
    return f"{count / (1 << 20):,.2f} MiB"


def names(path: Optional[Path] = None, *, seconds: float = 10.0, redact: bool = False) -> Names:
    """Who holds the memory now. `path`: a snapshot of torch.cuda.memory._dump_snapshot that the names are added to; what
    is not live in it is dropped and counted. `seconds` bounds the walk. `redact`: the answer and the file have `v1` and
    `file2.py` in the place of the program's names. Raises Error."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        raise Error("names: this process has not used PyTorch's CUDA: there is nothing to name")
    why = _holders.refused(torch)
    if why is not None:
        raise Error(f"names: {why}: no names are taken")
    redaction = _holders.Redaction() if redact else None
    file = None if path is None else _read(path)
    try:
        now = _observer.named_now(torch, _holders, seconds, redaction)
    except Exception as error:
        raise Error(f"names: no snapshot of PyTorch's allocator: {_observer.reason(error)}") from None
    record = now[_holders.KEY]
    _rename(record)
    if path is None or file is None:
        return _answer(record, 0)
    dropped = _keep_live(record, file)
    file[_holders.KEY] = record
    if redaction is not None:
        file.pop(_holders.PEAK_KEY, None)  # with names, of an earlier moment
        redaction.stacks_of(file)
    part = f"{os.fspath(path)}.part"
    try:
        with open(part, "wb") as out:
            pickle.dump(file, out, protocol=4)
        os.replace(part, path)
    except OSError as error:
        _observer.remove(part)
        raise Error(f"names: {os.fspath(path)} cannot be written: {error}") from None
    return _answer(record, dropped)


class _Plain(pickle.Unpickler):
    """A snapshot holds dicts, lists, texts and numbers; nothing else of a file is made."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it holds {module}.{name}")


def _read(path: Path) -> Dict[str, Any]:
    try:
        with open(path, "rb") as data:
            found = _Plain(data).load()
    except (OSError, ValueError, EOFError, IndexError, KeyError, AttributeError, pickle.UnpicklingError) as error:
        raise Error(f"names: {os.fspath(path)} is no snapshot that names can be added to: {error}") from None
    if not isinstance(found, dict) or "segments" not in found:
        raise Error(f"names: {os.fspath(path)} is no snapshot that names can be added to: give a file of "
                    "torch.cuda.memory._dump_snapshot")
    return found


def _rename(record: Dict[str, Any]) -> None:
    called = _cells.names()
    for one in record["holders"]:
        if one.get("file") in called:
            one["file"] = called[one["file"]]


def _keep_live(record: Dict[str, Any], file: Dict[str, Any]) -> int:
    """Blocks that the file has live; what it has beside them has no name. How many were dropped."""
    blocks = _holders.record.Blocks(file, _holders.calls.Calls([]))
    known = {address: (owner, others) for address, owner, others in record["blocks"]}
    live: List[Any] = []
    for one in record["holders"]:
        one["bytes"] = one["blocks"] = 0
    for index, start in enumerate(blocks.starts):
        owner, others = known.pop(start, (None, []))
        if owner is None:
            owner = _index_of_not_found(record["holders"])
        record["holders"][owner]["bytes"] += blocks.bytes_of(index)
        record["holders"][owner]["blocks"] += 1
        live.append([start, owner, others])
    record["blocks"] = live
    record["live_bytes"] = sum(blocks.bytes_of(index) for index in range(len(blocks)))
    return len(known)


def _index_of_not_found(holders: List[Dict[str, Any]]) -> int:
    for index, one in enumerate(holders):
        if one["kind"] == "not_found" and "file" not in one:
            return index
    holders.append({"kind": "not_found", "name": "not found", "bytes": 0, "blocks": 0})
    return len(holders) - 1


def _answer(record: Dict[str, Any], dropped: int) -> Names:
    held = [Holder(**{key: tuple(value) if isinstance(value, list) else value for key, value in one.items()})
            for one in record["holders"] if one["blocks"]]
    held.sort(key=lambda one: (-one.bytes, one.kind, one.name, one.place))
    return Names(tuple(held), record["live_bytes"], record["seconds"], record["bound"], record, dropped)
