"""What the marks of a test ask for, as flags of `ashlar dry-run` and limits."""

import dataclasses
import re
from typing import Any, Dict, List, Optional

from ashlar_gpu import _program
from ashlar_gpu._errors import Error

MARKS = ("fits(memory, **flags): no request is out of memory on a device of that size (\"24GiB\") or name "
         "(\"A100-80GB\"); runs under ashlar dry-run, with the flags given (conf=\"...\", devices=2)",
         "max_reserved(size, **flags): the allocator holds at most so much; runs under ashlar dry-run",
         "oom_at(n, **flags): the n-th call that asks the device for memory fails, with its retries; runs under ashlar "
         "dry-run")
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.I)
ROOM = "1TiB"  # of a device that a test has to itself


@dataclasses.dataclass(frozen=True)
class Wanted:
    fits: Optional[str]
    max_reserved: Optional[str]
    oom_at: Optional[int]
    flags: Dict[str, Any]

    def arguments(self) -> List[str]:
        """Of ashlar dry-run."""
        machine: Dict[str, Any] = {"fail_request": self.oom_at, **self.flags}
        if self.fits is not None:
            machine["capacity" if SIZE.fullmatch(self.fits) else "device"] = self.fits
        elif "capacity" not in machine and "device" not in machine:
            machine["capacity"] = ROOM
        return _program.flags(**machine)

    @property
    def max_reserved_bytes(self) -> Optional[int]:
        return None if self.max_reserved is None else bytes_of(self.max_reserved)


def bytes_of(size: str) -> int:
    """As the program reads sizes: GiB is 2^30, GB 10^9."""
    found = SIZE.fullmatch(size.strip())
    if found is None:
        raise Error(f"'{size}' is no size: such as 20GiB")
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index((unit or " ").upper()))


def wanted_of(item: Any) -> Optional[Wanted]:
    """None: the test has no mark of ours."""
    marks = {name: item.get_closest_marker(name) for name in ("fits", "max_reserved", "oom_at")}
    there = {name: mark for name, mark in marks.items() if mark is not None}
    if not there:
        return None
    flags: Dict[str, Any] = {}
    values: Dict[str, Any] = {"fits": None, "max_reserved": None, "oom_at": None}
    for name, mark in there.items():
        if len(mark.args) != 1:
            raise Error(f"the mark {name} takes one value: {name}({'3' if name == 'oom_at' else repr('24GiB')})")
        values[name] = mark.args[0] if name == "oom_at" else str(mark.args[0])
        flags.update(mark.kwargs)
    if values["oom_at"] is not None and (not isinstance(values["oom_at"], int) or values["oom_at"] < 1):
        raise Error(f"oom_at({values['oom_at']!r}): calls count from 1")
    if values["max_reserved"] is not None:
        bytes_of(values["max_reserved"])
    return Wanted(flags=flags, **values)
