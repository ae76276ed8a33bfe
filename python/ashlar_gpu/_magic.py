"""The magic %%ashlar: a cell with its memory explained.

    %load_ext ashlar_gpu

    %%ashlar                          # runs the cell here and records PyTorch's memory history
    %%ashlar --device A100-80GB       # runs the cell without a GPU, in a process of its own; nothing comes back from it
    %%ashlar --capacity 24GiB --conf expandable_segments:True

The explanation is shown under the cell: of its failure, else of its peak. A traceback comes after it. What `--device` or `--capacity` runs is the
cell with the names that it uses, by value (see _by_value.py).
"""

import argparse
import contextlib
import shlex
from typing import Any, Dict, Iterator, List, Optional, Sequence

from ashlar_gpu import _by_value
from ashlar_gpu._dry_run import dry_run
from ashlar_gpu._errors import Error
from ashlar_gpu._record import record


class CellFailed(Error):
    """Stops the notebook, and shows the cell's own error."""

    def __init__(self, line: str, shown: Sequence[str] = ()) -> None:
        super().__init__(line)
        self.shown = shown

    def _render_traceback_(self) -> List[str]:
        return list(self.shown) or [f"CellFailed: {self}"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise Error(f"%%ashlar: {message}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%ashlar", add_help=False)
    for flag in ("--device", "--capacity", "--conf", "--context", "--values", "--keep"):
        parser.add_argument(flag)
    parser.add_argument("--text", action="store_true", help="the text in place of HTML")
    return parser


def register(shell: Any) -> None:
    shell.register_magic_function(lambda line, cell: ashlar(shell, line, cell), "cell", "ashlar")


def ashlar(shell: Any, line: str, cell: str) -> None:
    given = _parser().parse_args(shlex.split(line))
    if given.device or given.capacity:
        _without_gpu(shell, given, cell)
    elif given.conf or given.context or given.values:
        raise Error("%%ashlar: --conf, --context and --values go with --device or --capacity; here the settings are "
                    "those that this process began with")
    else:
        _here(shell, given, cell)


def _here(shell: Any, given: Any, cell: str) -> None:
    run = record(given.keep).__enter__()
    with _held_traceback(shell) as shown:
        error = _error_of(shell.run_cell(cell))
    run.__exit__(None if error is None else type(error), error, None)
    if run.snapshot is not None:
        _show(run.explanation, given)
    if error is not None:
        first = str(error).strip().splitlines()[:1]
        raise CellFailed(": ".join([type(error).__name__, *first]), shown)


@contextlib.contextmanager
def _held_traceback(shell: Any) -> Iterator[List[str]]:
    """What the cell's error looks like, in place of showing it: the answer comes first."""
    lines: List[str] = []
    before = shell._showtraceback  # where IPython hands over a traceback that is made
    shell._showtraceback = lambda kind, error, made: lines.extend(made)
    try:
        yield lines
    finally:
        shell._showtraceback = before


def _error_of(result: Any) -> Optional[BaseException]:
    error = result.error_before_exec or result.error_in_exec
    return error if isinstance(error, BaseException) else None


def _without_gpu(shell: Any, given: Any, cell: str) -> None:
    source = shell.transform_cell(cell)
    names = _by_value.used_globals(compile(source, "<cell>", "exec"), shell.user_ns)
    run = dry_run(run_cell, args=(source, names), device=given.device, capacity=given.capacity, conf=given.conf,
                  context=given.context, values=given.values, output=given.keep)
    print(run.stdout, end="")
    _show(run, given)
    if run.exit_code != 0:
        print(run.stderr.strip())  # below the answer
        last = run.stderr.strip().splitlines()[-1:] or [f"exit code {run.exit_code}"]
        raise CellFailed(last[0])


def run_cell(source: str, names: Dict[str, Any]) -> None:
    """In the process without a GPU: the cell in the namespace of what came along."""
    _by_value.MAIN.update(names)
    exec(compile(source, "<cell>", "exec"), _by_value.MAIN)


def _show(answer: Any, given: Any) -> None:
    if given.text:
        print(answer)
        return
    from IPython import display  # type: ignore[import-not-found,unused-ignore]

    display.display(answer)  # type: ignore[no-untyped-call,unused-ignore]
