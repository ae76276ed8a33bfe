"""dry_run: a program, or a function, over a CUDA device that has memory and no arithmetic."""

import dataclasses
import os
import shlex
import sys
import tempfile
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ashlar_gpu import _call, _page, _program
from ashlar_gpu._answer import with_page
from ashlar_gpu._decode import decode
from ashlar_gpu._errors import Error, kind_of
from ashlar_gpu._explain import Size
from ashlar_gpu._sources import Path
from ashlar_gpu.results.dry_run import DryRun

WORDS = "a list of words, such as [\"python\", \"train.py\"]"


def dry_run(program: Union[str, Sequence[Path], Callable[..., Any]], *, args: Sequence[Any] = (),
            kwargs: Optional[Mapping[str, Any]] = None, device: Optional[str] = None, capacity: Optional[Size] = None,
            devices: Optional[int] = None, conf: Optional[str] = None, context: Optional[Size] = None,
            lag: Optional[str] = None, values: Optional[str] = None, fail_call: Optional[int] = None,
            fail_request: Optional[int] = None, fail_after: Optional[Size] = None, profile: Optional[Path] = None,
            events: Optional[int] = None, skip_init: bool = False, reproducible: bool = False,
            cards: Optional[str] = None, once: bool = False, output: Optional[Path] = None,
            env: Optional[Mapping[str, str]] = None, cwd: Optional[Path] = None,
            page: Optional[bool] = None, timeout: Optional[float] = None) -> DryRun:
    """Runs `program` without a GPU; its memory is exact, its kernels do not run.

    `program` is a command line, or a function that is called with `args` and `kwargs` in a process of its own. Such a
    function may be one of a notebook, a lambda or a closure: what it uses of its surroundings goes along by value, what
    it returns is not brought back. The other keywords are the flags of `ashlar dry-run` (ashlar guide dry-run);
    `events` is --history, and `page` as for explain. Raises Error where the program cannot be served; a program that fails does not raise: see
    `exit_code`, `stderr`, `fits`.

        ashlar_gpu.dry_run(["python", "train.py"], device="A100-80GB").fits
    """
    flags = _program.flags(device=device, capacity=capacity, devices=devices, conf=conf, context=context, lag=lag,
                           values=values, fail_call=fail_call, fail_request=fail_request, fail_after=fail_after,
                           profile=profile, history=events, skip_init=skip_init, reproducible=reproducible,
                           cards=cards, once=once, output=None if output is None else os.fspath(output))
    environment = {**os.environ, **(env or {})}
    where = None if cwd is None else os.fspath(cwd)
    if not callable(program):
        words = _words(program)
        if args or kwargs:
            raise Error("args and kwargs go with a function: put a command line's arguments into its list")
        return _ran(flags, words, environment, where, timeout, output, _page.wanted(page))
    if isinstance(args, (str, bytes)) or not isinstance(args, Iterable):
        raise Error(f"args is {kind_of(args)}: give the function's arguments as a list or tuple, such as args=(3,)")
    if not isinstance(kwargs, (Mapping, type(None))):
        raise Error(f"kwargs is {kind_of(kwargs)}: give the function's keywords as a dict, such as kwargs={{'batch': 3}}")
    with tempfile.TemporaryDirectory(prefix="ashlar-") as folder:
        command = function_command(program, tuple(args), dict(kwargs or {}), folder)
        return _ran(flags, command, environment, where, timeout, output, _page.wanted(page))


def function_command(function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any],
                     folder: str) -> List[str]:
    """The command line that calls it; what it needs lies in `folder` meanwhile."""
    file = os.path.join(folder, "call")
    with open(file, "wb") as out:
        out.write(_call.payload(function, args, kwargs))
    paths = [os.path.abspath(one or os.curdir) for one in sys.path]
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [_program.python(), "-c", _call.START, file, *paths, *([] if ours in paths else [ours])]


def _words(program: Any) -> List[str]:
    if isinstance(program, str):
        try:
            words = shlex.split(program)
        except ValueError as error:
            raise Error(f"{program!r} is no command line: {error}; give {WORDS}") from None
    elif isinstance(program, Sequence) and not isinstance(program, (bytes, bytearray)):
        words = [str(word) for word in program]
    else:
        raise Error(f"{kind_of(program)} cannot be run: give a function, or {WORDS}")
    if not words:
        raise Error("there is nothing to run: a command line is " + WORDS)
    return words


def _ran(flags: List[str], command: List[str], env: Dict[str, str], cwd: Optional[str], timeout: Optional[float],
         output: Optional[Path], page: bool) -> DryRun:
    ran = _program.run(["dry-run", *flags], program=command, timeout=timeout, env=env, cwd=cwd, page=page)
    _program.answered(ran, "dry-run")
    stderr, text = report_apart(ran.stderr)
    made = decode(DryRun, ran.json, text=text, json=ran.json, stdout=ran.stdout, stderr=stderr,
                  history=None if output is None else os.fspath(output))
    return with_page(with_explanation(made), _page.of_run(ran.page))


def report_apart(stderr: str) -> Tuple[str, str]:
    """What the program wrote, and the report that the launcher wrote after it."""
    at = max(stderr.rfind("\nDRY RUN "), 0 if stderr.startswith("DRY RUN ") else -1)
    if at < 0:
        return stderr, ""
    begin = at + (0 if stderr.startswith("DRY RUN ", at) else 1)
    return stderr[:begin], stderr[begin:]


def with_explanation(made: DryRun) -> DryRun:
    """The explanation is an answer of its own: its text is the part of the report under its title."""
    if made.explanation is None:
        return made
    _, _, after = made.text.partition("\nEXPLAINED: ")
    explanation = dataclasses.replace(made.explanation, text=after.partition("\n")[2], json=made.json["explanation"])
    return dataclasses.replace(made, explanation=explanation)
