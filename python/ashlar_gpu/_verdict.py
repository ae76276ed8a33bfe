"""The verdict as the end of a traceback: a note of the exception (Python 3.11 and later) that is made when it is shown.

    attach(error, failure)       # the error's traceback ends with the verdict wherever it is printed
    settle(error)                # made now, for what prints notes without asking them

An error that is caught and never shown costs nothing. The note keeps the exception, and so what its frames hold, not
alive. Thread rule: any thread.
"""

import os
import sys
import weakref
from typing import Any, List, Optional

from ashlar_gpu import _sources
from ashlar_gpu._errors import Error
from ashlar_gpu._explain import explain
from ashlar_gpu._observer import Failure
from ashlar_gpu.results.explanation import Explanation

UNSEEN = "ashlar: out of memory; the explanation is made where this is printed"
HAS_NOTES = sys.version_info >= (3, 11)
BRIEF_PARTS = ("OUT OF ", "REFUSED BY ", "NO FAILURE", "WHERE ", "WHY  ", "NEXT")


class Verdict(str):
    """A text that asks for its explanation once, when it is first shown."""

    _shown: Optional[str] = None
    _error: Any = None
    _failure: Optional[Failure] = None
    _is_brief: Optional[bool] = None

    def __new__(cls, text: str = UNSEEN) -> "Verdict":
        return super().__new__(cls, text)

    def __str__(self) -> str:
        if self._shown is None:
            self._shown = UNSEEN  # what asks for it meanwhile, such as its own traceback, gets this
            self._shown = text_for(self._error and self._error(), self._failure, self._is_brief)
        return self._shown

    def __reduce__(self) -> Any:
        return str, (str(self),)  # in another process it is what it said


def attach(error: BaseException, failure: Failure, is_brief: Optional[bool] = None) -> None:
    note = Verdict()
    note._failure, note._is_brief = failure, is_brief
    try:
        note._error = weakref.ref(error)
        setattr(error, "__ashlar_snapshot__", failure.snapshot)
        setattr(error, "__ashlar_failure__", failure)
        if HAS_NOTES:
            setattr(error, "__notes__", [*_notes(error), note])
    except (AttributeError, TypeError):
        pass  # an exception that takes no attributes: the hooks of on_oom print the text after it


def note_of(error: BaseException) -> Optional[Verdict]:
    return next((note for note in _notes(error) if isinstance(note, Verdict)), None)


def _notes(error: BaseException) -> List[str]:
    return list(getattr(error, "__notes__", None) or ())


def told(error: BaseException, explanation: Explanation) -> None:
    """The explanation is there already."""
    note = note_of(error)
    if note is not None and note._shown is None:
        note._shown = "\n" + explanation.text.rstrip()


def settle(error: BaseException) -> None:
    """Puts the text in the place of the notes that would be asked for it, at the end of the whole chain of errors."""
    failed = _sources.failure_in(error)
    note = None if failed is None else note_of(failed)
    if failed is None or note is None:
        return
    text = str(note)
    setattr(failed, "__notes__", [one for one in _notes(failed) if one is not note])
    setattr(error, "__notes__", [*_notes(error), text])


def explanation_of(error: Optional[BaseException], failure: Optional[Failure]) -> Explanation:
    """Of the snapshot and the message together; of the message alone where the snapshot is gone or tells nothing."""
    message = failure.message if failure is not None else ""
    log = _sources.text_of(error) if error is not None else f"RuntimeError: {message}\n"
    snapshot = failure.snapshot if failure is not None else None
    if snapshot is None or not os.path.exists(snapshot):
        return explain(log if "\n" in log else log + "\n")
    try:
        both = explain([snapshot, log])
        return explain(snapshot) if both.others else both  # a message without figures is of no snapshot
    except Error:  # the log says nothing of memory
        return explain(snapshot)


def text_for(error: Optional[BaseException], failure: Optional[Failure], is_brief: Optional[bool] = None) -> str:
    """What is shown; where it cannot be had, the line that says why. Never raises."""
    if failure is not None:
        failure.is_shown = True
    try:
        explanation = explanation_of(error, failure)
    except Exception as problem:
        return f"ashlar: out of memory, not explained: {problem}"
    ranks = os.environ.get("WORLD_SIZE", "1") not in ("", "1")
    text = brief(explanation.text) if (ranks if is_brief is None else is_brief) else explanation.text
    return "\n" + text.rstrip()


def brief(text: str) -> str:
    """The head of an explanation, where the bytes went, why, and what to change."""
    parts = [part for part in text.split("\n\n") if part.strip()]
    return "\n\n".join(part for part in parts if part.startswith(BRIEF_PARTS))
