"""Runs the program `ashlar` and reads its answer: text and JSON of one run.

    answer = run(["explain", "snapshot.pickle"])
    answer.text, answer.json

Under `ashlar dry-run` and `ashlar record` the program is started as if outside of them: it is no part of what is run.
Thread rule: any thread.
"""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional, Sequence

from ashlar_gpu import _native
from ashlar_gpu._errors import Error

# What dry-run and record put into the environment of a program.
LAUNCHER = ("ASHLAR_HOLLOW_RUN", "ASHLAR_RECORD", "ASHLAR_HISTORY", "ASHLAR_SKIP_INIT", "ASHLAR_REPRODUCIBLE",
            "ASHLAR_NAMES")


@dataclasses.dataclass(frozen=True)
class Ran:
    exit_code: int
    text: str  # the answer; of dry-run, whose standard output is the program's, "" here
    stdout: str
    stderr: str
    json: Any  # None: none was written
    page: Optional[str] = None  # what --report wrote, where it was asked for


def path() -> str:
    try:
        return str(_native.program())
    except _native.NotFound as error:
        raise Error(str(error)) from None


def environment(given: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """Ours, or `given`, without what a launcher of ours put there."""
    whole = dict(os.environ if given is None else given)
    if not (whole.get("ASHLAR_HOLLOW_RUN") or whole.get("ASHLAR_RECORD")):
        return whole
    kept = {key: value for key, value in whole.items() if key not in LAUNCHER}
    others = [one for one in kept.pop("LD_PRELOAD", "").split(":") if one and "libashlar_" not in os.path.basename(one)]
    return {**kept, "LD_PRELOAD": ":".join(others)} if others else kept


def run(arguments: Sequence[str], stdin: Optional[bytes] = None, program: Sequence[str] = (),
        timeout: Optional[float] = None, env: Optional[Dict[str, str]] = None, cwd: Optional[str] = None,
        page: bool = False) -> Ran:
    """`arguments` of ashlar; `program` is what comes after `--`. `page`: with the page of the same run."""
    with tempfile.TemporaryDirectory(prefix="ashlar-") as folder:
        answer = os.path.join(folder, "answer.json")
        report = os.path.join(folder, "page.html")
        shown = ["--report", report] if page else []
        command = [path(), arguments[0], "--json-to", answer, *shown, *arguments[1:]]
        if program:
            command += ["--", *program]
        try:
            done = subprocess.run(command, input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False,
                                  env=environment(env), cwd=cwd)
        except subprocess.TimeoutExpired:
            raise Error(f"ashlar {arguments[0]} was not done after {timeout} s: give a longer timeout") from None
        except OSError as error:
            raise Error(f"the program {command[0]} could not be started: {error}") from None
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        return Ran(done.returncode, "" if program else out, out, err, _read(answer), _text(report))


def answered(ran: Ran, command: str) -> Ran:
    """The same, where there is an answer; else the program's own line is the error."""
    if ran.json is not None:
        return ran
    raise Error(said(ran.stderr) or f"ashlar {command} ended with exit code {ran.exit_code} and no answer")


def said(stderr: str) -> str:
    """The program's own last line, without its name before it."""
    lines = [line for line in stderr.splitlines() if line.startswith("ashlar: ")]
    return lines[-1][len("ashlar: "):] if lines else "\n".join(stderr.strip().splitlines()[-3:])


def _read(file: str) -> Any:
    try:
        with open(file, encoding="utf-8") as text:
            return json.load(text)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise Error(f"the program's answer is no JSON ({error}): program and package are of different versions") from None


def _text(file: str) -> Optional[str]:
    try:
        with open(file, encoding="utf-8") as text:
            return text.read()
    except FileNotFoundError:
        return None


def flags(**given: Any) -> List[str]:
    """Keywords as flags: batch=8 is --batch 8, padded=True is --padded, None and False are left out."""
    out: List[str] = []
    for key, value in given.items():
        name = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        out += [name] if value is True else [name, str(value)]
    return out


def python() -> str:
    """The interpreter that a program of the reader's runs in: this one."""
    return sys.executable or "python3"
