"""sweep: the setting that serves one trace or several best."""

from typing import Optional, Sequence, Union

from ashlar_gpu import _program
from ashlar_gpu._decode import decode
from ashlar_gpu._explain import Size
from ashlar_gpu._sources import Path, files_of
from ashlar_gpu.results.sweep import Sweep


def sweep(traces: Union[Path, Sequence[Path]], *, confs: Union[str, Sequence[str], None] = None,
          budget: Optional[int] = None, seconds: Optional[float] = None, jobs: Optional[int] = None,
          rows: Optional[int] = None, capacity: Optional[Size] = None, conf: Optional[str] = None,
          compat: Optional[str] = None, device: Union[int, str, None] = None, memory_fraction: Optional[float] = None,
          timeout: Optional[float] = None) -> Sweep:
    """Replays the traces under many settings, best first. The keywords are the flags of `ashlar sweep`
    (ashlar guide sweep); `confs` are the only settings to try. Raises Error.

        ashlar_gpu.sweep(["rank0.pickle", "rank1.pickle"], capacity="80GiB").paste
    """
    listed = confs if confs is None or isinstance(confs, str) else ";".join(one or "default" for one in confs)
    given = _program.flags(confs=listed, budget=budget, seconds=seconds, jobs=jobs, rows=rows, capacity=capacity,
                           conf=conf, compat=compat, device=device, memory_fraction=memory_fraction)
    with files_of(traces) as files:
        ran = _program.answered(_program.run(["sweep", *given, "--color", "never", "--", *files.names],
                                             timeout=timeout), "sweep")
    json = files.named(ran.json)
    return decode(Sweep, json, text=files.named(ran.text), json=json)
