#!/usr/bin/env python3
"""What `cmake --install` puts into a prefix serves programs as the build tree does: install_test.py BUILD CLIENT.

CLIENT has a stand-in of CUDA's runtime linked in (tests/hollow/audit): it is served where each file of the hollow device is there.
"""

import pathlib
import subprocess
import sys
import tempfile

import program_checks as checks

SERVED = "0 1 0 0 801"


def main(build, client):
    with tempfile.TemporaryDirectory() as folder:
        for component in ("hollow", "program"):
            subprocess.run(["cmake", "--install", build, "--prefix", folder, "--component", component], check=True,
                           stdout=subprocess.DEVNULL)
        program = pathlib.Path(folder, "bin/ashlar")
        checks.check_version(program)
        checks.check_dry_run(program, sys.executable, folder)
        text = checks.run(program, "dry-run", "--device", "A10", "--", client, cwd=folder)
        assert text.startswith(SERVED), f"a runtime that is linked in is not served by what is installed: {text}"
    print("what is installed serves a program whose runtime is linked in")


if __name__ == "__main__":
    main(*sys.argv[1:])
