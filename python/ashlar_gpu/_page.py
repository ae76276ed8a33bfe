"""A page of `ashlar report`: as a file, and as a notebook shows it.

    page = ashlar_gpu.report("snapshot.pickle")
    page.save("page.html")

A notebook shows it in a frame of its own (_frame.py). The page's document lies in the notebook's file, so it is there when that
is opened again.
"""

import dataclasses
from typing import Optional

from ashlar_gpu import _cells, _frame
from ashlar_gpu._sources import Path


@dataclasses.dataclass(frozen=True, repr=False)
class Page:
    html: str  # the whole file

    def save(self, file: Path) -> None:
        with open(file, "w", encoding="utf-8", newline="") as out:
            out.write(self.html)

    def __repr__(self) -> str:
        return f"<Page: {len(self.html)} characters of HTML; save(\"page.html\") writes it>"

    def _repr_html_(self) -> str:
        return _frame.of(self.html)


def wanted(page: Optional[bool]) -> bool:
    """Whether an answer is to have its page: as asked for, else in a notebook, which shows it."""
    return _cells.is_notebook() if page is None else page


def of_run(text: Optional[str]) -> Optional[Page]:
    """Nothing to look at but words, as of a message: no page."""
    return Page(text) if text is not None and 'id="ashlar-blob-0"' in text else None
