"""explain: what happened in a run, and what would have helped."""

from typing import Any, Dict, List, Optional, Sequence, Union

from ashlar_gpu import _page, _program
from ashlar_gpu._answer import with_page
from ashlar_gpu._decode import decode
from ashlar_gpu._sources import Path, Source, files_of
from ashlar_gpu.results.explanation import Explanation

Size = Union[str, int]  # "24GiB", or bytes


def explain(source: Source, *, capacity: Optional[Size] = None, conf: Optional[str] = None,
            compat: Optional[str] = None, device: Union[int, str, None] = None, device_used: Optional[Size] = None,
            memory_fraction: Optional[float] = None, model: Optional[Path] = None, ranks: Sequence[Path] = (),
            page: Optional[bool] = None, timeout: Optional[float] = None) -> Explanation:
    """Why memory ran out, where every byte was, and which setting would have helped.

    `source` is a path to a snapshot, recording, trace or log; several paths; an exception; the text of a message; or
    what torch.cuda.memory._snapshot() returned. A log and the snapshot of the same failure make one answer. Where the
    input holds several, the first is returned, and the rest are its `others`. The keywords are the flags of `ashlar
    explain` (ashlar guide explain). `page`: makes the answer's `page`, which a notebook shows; in a notebook it is made
    by itself. `device`: an index, or a card by its name. Raises Error.

        ashlar_gpu.explain("snapshot.pickle", capacity="24GiB").verdict
    """
    given = _program.flags(capacity=capacity, conf=conf, compat=compat, device=device, device_used=device_used,
                           memory_fraction=memory_fraction, model=model)
    for rank in ranks:
        given += ["--rank", str(rank)]
    with files_of(source) as files:
        ran = _program.answered(_program.run(["explain", *given, "--color", "never", "--", *files.names],
                                             timeout=timeout, page=_page.wanted(page)), "explain")
    return with_page(of_json(files.named(ran.json), files.named(ran.text)), _page.of_run(ran.page))


def of_json(json: Union[Dict[str, Any], List[Dict[str, Any]]], text: str) -> Explanation:
    first, *rest = json if isinstance(json, list) else [json]
    others = tuple(decode(Explanation, one, text="", json=one, others=()) for one in rest)
    return decode(Explanation, first, text=text, json=first, others=others)
