"""report: a page to look at, in a notebook or as a file.

    ashlar_gpu.report("snapshot.pickle")                        # the last line of a cell: the page, there
    ashlar_gpu.report("snapshot.pickle").save("page.html")

The page is the one of `ashlar report`.
"""

import os
import subprocess
import tempfile
from typing import Any, List, Optional, Union

from ashlar_gpu import _program
from ashlar_gpu._errors import Error
from ashlar_gpu._explain import Size
from ashlar_gpu._page import Page
from ashlar_gpu._sources import Source, files_of

def report(source: Source, *, capacity: Optional[Size] = None, conf: Optional[str] = None,
           compat: Optional[str] = None, device: Union[int, str, None] = None, device_used: Optional[Size] = None,
           memory_fraction: Optional[float] = None, timeout: Optional[float] = None) -> Page:
    """What explain says as a page: memory over time, the segments at any moment, what-ifs, causes.

    `source` is what explain takes; several paths stand side by side. The keywords are the flags of `ashlar report`
    (ashlar guide report). Raises Error.

        ashlar_gpu.report(["rank0.pickle", "rank1.pickle"]).save("page.html")
    """
    given = _program.flags(capacity=capacity, conf=conf, compat=compat, device=device, device_used=device_used,
                           memory_fraction=memory_fraction)
    with files_of(source) as files:
        try:
            return Page(_page(given, files.names, timeout))
        except Error as error:
            raise Error(files.named(str(error))) from None


def _page(given: List[str], names: List[str], timeout: Optional[float]) -> str:
    with tempfile.TemporaryDirectory(prefix="ashlar-") as folder:
        page = os.path.join(folder, "page.html")
        command: List[Any] = [_program.path(), "report", *given, "-o", page, "--", *names]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=timeout, check=False, env=_program.environment())
        except subprocess.TimeoutExpired:
            raise Error(f"ashlar report was not done after {timeout} s: give a longer timeout") from None
        except OSError as error:
            raise Error(f"the program {command[0]} could not be started: {error}") from None
        if done.returncode != 0:
            raise Error(_program.said(done.stderr.decode("utf-8", "replace")))
        with open(page, encoding="utf-8") as text:
            return text.read()
