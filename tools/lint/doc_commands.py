#!/usr/bin/env python3
"""Runs the commands in the documents and compares what they print with what the documents say they print.

    <!-- test -->
    ```console
    $ ashlar --version
    ashlar 0.1.0
    ```

A line that starts with "$ " is a command (a backslash at its end continues it), the lines up to the next command are
its whole output, stderr included; a line "..." stands for any lines. Commands run in the repository root with the
folder ASHLAR_BIN_DIR first on PATH and must exit with 0. Every other block of commands (console, sh, bash, shell) says
why no test runs it: <!-- not run: reason -->. What they write under /tmp goes into a folder of this run, so that no two
users' meet.
"""

import dataclasses
import os
import re
import subprocess
import tempfile

import lint_tree
from lint_tree import Finding, Sample

FENCE = re.compile(r"^```(\w*)\s*$")
COMMAND_LANGUAGES = {"console", "sh", "bash", "shell"}
NOT_RUN = re.compile(r"^<!-- not run: \S.* -->$")
TIMEOUT_SECONDS = 300
SCRATCH = tempfile.TemporaryDirectory()  # stands for /tmp


@dataclasses.dataclass
class Block:
    path: str
    line: int  # of the opening fence
    language: str
    marker: str  # the line before the fence
    body: list  # (number, text)


@dataclasses.dataclass
class Command:
    line: int
    text: str
    expected: list


def blocks(root, path):
    found, current, before = [], None, ""
    for number, text in lint_tree.lines(root, path):
        fence = FENCE.match(text)
        if current is None and fence:
            current = Block(path, number, fence[1], before, [])
        elif current is not None and text.rstrip() == "```":
            found.append(current)
            current = None
        elif current is not None:
            current.body.append((number, text))
        if text.strip():
            before = text.strip()
    return found


def commands(block):
    found, continued = [], False
    for number, text in block.body:
        if continued:
            found[-1].text += "\n" + text
        elif text.startswith("$ "):
            found.append(Command(number, text[2:], []))
        elif found:
            found[-1].expected.append(text.rstrip())
        continued = (continued or text.startswith("$ ")) and text.endswith("\\")
    return found


def matches(expected, printed):
    """True where `printed` is `expected`, whose lines "..." stand for any lines."""
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(matches(expected[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and expected[0] == printed[0] and matches(expected[1:], printed[1:])


def run(root, command):
    environment = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8")
    if "ASHLAR_BIN_DIR" in os.environ:
        environment["PATH"] = os.environ["ASHLAR_BIN_DIR"] + os.pathsep + os.environ["PATH"]
    return subprocess.run(["bash", "-c", command.text.replace("/tmp/", SCRATCH.name + "/")], cwd=root, env=environment, text=True, timeout=TIMEOUT_SECONDS,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def check_command(root, path, command):
    try:
        result = run(root, command)
    except subprocess.TimeoutExpired:
        return [Finding("exit", path, command.line, f"`{command.text}` ran for over {TIMEOUT_SECONDS} s")]
    printed = [text.rstrip() for text in result.stdout.replace(SCRATCH.name + "/", "/tmp/").splitlines()]
    shown = "\n    ".join(printed)
    if result.returncode != 0:
        return [Finding("exit", path, command.line, f"`{command.text}` exits with {result.returncode}:\n    {shown}\n")]
    if not matches(command.expected, printed):
        return [Finding("output", path, command.line, f"`{command.text}` prints otherwise:\n    {shown}\n")]
    return []


def check_block(root, block):
    if block.language not in COMMAND_LANGUAGES or NOT_RUN.match(block.marker):
        return []
    if block.language != "console" or block.marker != "<!-- test -->":
        return [Finding("unmarked", block.path, block.line,
                        "put <!-- test --> before a block ```console, or <!-- not run: reason -->")]
    found = commands(block)
    if not found:
        return [Finding("empty", block.path, block.line, "the block has no line that starts with '$ '")]
    return [finding for command in found for finding in check_command(root, block.path, command)]


def check(root):
    return [finding for path in lint_tree.files(root, {".md"}) for block in blocks(root, path)
            for finding in check_block(root, block)]


def console(body, marker="<!-- test -->", language="console"):
    return {"docs/a.md": f"{marker}\n```{language}\n{body}```\n"}


SAMPLES = [
    Sample("", console("$ echo one\none\n$ printf 'a\\nb\\nc\\n'\na\n...\nc\n$ true\n$ echo two \\\n  three\ntwo three\n")),
    Sample("", console("$ cat docs/a.md\n...\n")),
    Sample("", console("false\n", "<!-- not run: it takes an hour -->", "sh")),
    Sample("", console("$ echo one >/tmp/a && ls /tmp/a && cat /tmp/a\n/tmp/a\none\n")),
    Sample("output", console("$ echo one\ntwo\n")),
    Sample("output", console("$ echo one\n")),
    Sample("output", console("$ true\none\n")),
    Sample("output", console("$ printf 'a\\nb\\n'\na\n")),
    Sample("output", console("$ printf 'a\\nb\\n'\n...\na\n")),
    Sample("exit", console("$ echo one; false\none\n")),
    Sample("exit", console("$ no-such-program-at-all\n...\n")),
    Sample("unmarked", console("$ echo one\none\n", "Text before.")),
    Sample("unmarked", console("echo one\n", "<!-- test -->", "bash")),
    Sample("unmarked", console("echo one\n", "<!-- not run: -->", "bash")),
    Sample("empty", console("echo one\n")),
]

if __name__ == "__main__":
    lint_tree.main("doc_commands", check, SAMPLES)
