"""What all answers share: the program's own text, the JSON behind the fields, and how a notebook shows them.

    answer = ashlar_gpu.explain("snapshot.pickle")
    print(answer)                     # as `ashlar explain` prints it
    answer.verdict, answer.json       # a field; all of them, as plain dicts and lists

Values are immutable; any thread may read them.
"""

import dataclasses
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

if TYPE_CHECKING:
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

    def _repr_html_(self) -> str:
        from ashlar_gpu import _html

        return _html.page(self)


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
