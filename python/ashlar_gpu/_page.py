"""A page of `ashlar report`: as a file, and as a notebook shows it.

    page = ashlar_gpu.report("snapshot.pickle")
    page.save("page.html")

A notebook shows it in a frame of its own, which can neither read nor change the notebook. The page lies in the notebook's
file, so it is there when that is opened again.
"""

import dataclasses
import html as html_text
import sys
from typing import Optional

from ashlar_gpu._sources import Path

HEIGHT = 900  # pixels of the frame in a notebook
MOST = 8 << 20  # characters of a page that an answer puts into a notebook by itself


@dataclasses.dataclass(frozen=True, repr=False)
class Page:
    html: str  # the whole file

    def save(self, file: Path) -> None:
        with open(file, "w", encoding="utf-8", newline="") as out:
            out.write(self.html)

    def __repr__(self) -> str:
        return f"<Page: {len(self.html)} characters of HTML; save(\"page.html\") writes it>"

    def _repr_html_(self) -> str:
        return (f'<iframe sandbox="allow-scripts" title="ashlar report" style="width:100%;height:{HEIGHT}px;border:0" '
                f'srcdoc="{html_text.escape(self.html, quote=True)}"></iframe>')


def wanted(page: Optional[bool]) -> bool:
    """Whether an answer is to have its page: as asked for, else in a notebook, which shows it."""
    return is_notebook() if page is None else page


def is_notebook() -> bool:
    """IPython with a kernel. Nothing is imported: a notebook has done that."""
    shell_of = getattr(sys.modules.get("IPython"), "get_ipython", None)
    try:
        return shell_of is not None and getattr(shell_of(), "kernel", None) is not None
    except Exception:  # a shell that is half made
        return False


def of_run(text: Optional[str]) -> Optional[Page]:
    """Nothing to look at but words, as of a message: no page."""
    return Page(text) if text is not None and 'id="ashlar-blob-0"' in text else None
