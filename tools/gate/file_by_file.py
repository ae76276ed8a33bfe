#!/usr/bin/env python3
"""Has the compiler read each source named on standard input, by the command of a configured build; nothing is written.

    file_by_file.py --tree build/syntax --jobs 2 < names
"""

import argparse
import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys


def commands_of(tree):
    """{source: (folder, the command that only reads it)}"""
    found = {}
    for row in json.loads((tree / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(row["command"])
        at = words.index("-o")
        found[row["file"]] = row["directory"], words[:at] + words[at + 2:] + ["-fsyntax-only"]
    return found


def read(source, folder, command):
    """What the compiler says of it; None where nothing is wrong."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return None if done.returncode == 0 else f"{source} does not compile by itself:\n{done.stderr}"


def prove(folder, command, source):
    """The compiler must refuse a source that lacks an include: a check that cannot fail is worse than none."""
    bad = folder / "bad_sample.cc"
    bad.write_text("int Sample() { return NothingDeclaresThis(); }\n", encoding="utf-8")
    words = [str(bad) if word == source else word for word in command]
    if words == command or read(str(bad), folder, words) is None:
        sys.exit("file_by_file.py: the compiler accepts a bad sample")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    flags = parser.parse_args()
    commands = commands_of(flags.tree)
    sources = sys.stdin.read().split()
    prove(flags.tree, commands[sources[0]][1], sources[0])
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        wrong = [text for text in pool.map(lambda source: read(source, *commands[source]), sources) if text]
    for text in wrong:
        print(text, file=sys.stderr)
    print(f"{len(sources)} sources, {len(wrong)} that do not compile by themselves")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
