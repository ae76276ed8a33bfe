#!/usr/bin/env python3
"""Libraries that programs load show them no name of C++: exports_test.py LIBRARY..."""

import pathlib
import subprocess
import sys
import tempfile

import program_checks as checks


def prove(folder):
    """A library that shows a template of C++'s library is a finding."""
    source, library = folder / "bad.cc", folder / "libbad.so"
    source.write_text("#include <map>\nextern \"C\" int ashlar_bad(int i) { std::map<int, int> m; return m[i]; }\n")
    subprocess.check_call(["c++", "-shared", "-fPIC", "-O0", "-o", library, source])
    try:
        checks.check_exports(library)
    except AssertionError:
        return
    sys.exit("the test finds nothing in a library that shows std::map")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        prove(pathlib.Path(scratch))
    for path in sys.argv[1:]:
        checks.check_exports(pathlib.Path(path).resolve())
    print(f"{len(sys.argv) - 1} libraries show C functions alone")
