"""What all answers share: the program's own text, the JSON behind the fields, and how a notebook shows them.

    answer = ashlar_gpu.explain("snapshot.pickle")
    print(answer)                     # as `ashlar explain` prints it
    answer.verdict, answer.json       # a field; all of them, as plain dicts and lists

Values are immutable; any thread may read them.
"""

import dataclasses
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, TypeVar

if TYPE_CHECKING:
    from ashlar_gpu._page import Page
    from ashlar_gpu.results.explanation import Cause


@dataclasses.dataclass(frozen=True, repr=False)
class Answer:
    text: str  # as the program prints it
    json: Dict[str, Any]  # by the schema in docs/schemas

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        first = self.text.strip().splitlines()[:1] or [""]
        return f"<{type(self).__name__}: {' '.join(first[0].split())}>"

    @property
    def page(self) -> Optional["Page"]:
        """The page of `ashlar report`, where the answer was made in a notebook or with page=True and has one."""
        page: Optional["Page"] = self.__dict__.get("_page")
        return page

    def _repr_html_(self) -> str:
        from ashlar_gpu import _html

        return _html.shown(self)


A = TypeVar("A", bound=Answer)


def with_page(answer: A, page: Optional["Page"]) -> A:
    """The same answer, just made: what it shows is no field, so that answers with and without it are equal."""
    if page is not None:
        object.__setattr__(answer, "_page", page)
    return answer


@dataclasses.dataclass(frozen=True, repr=False)
class ExplanationAnswer(Answer):
    if TYPE_CHECKING:
        causes: Tuple["Cause", ...]
        verdict: str

    @property
    def found(self) -> Tuple["Cause", ...]:
        """The causes that were found, the first first; `causes` also has those that are absent."""
        return tuple(cause for cause in self.causes if cause.finding == "found")


@dataclasses.dataclass(frozen=True, repr=False)
class DryRunAnswer(Answer):
    stdout: str  # of the program
    stderr: str
    history: Optional[str]  # where the history was kept: a file, or a folder of several
