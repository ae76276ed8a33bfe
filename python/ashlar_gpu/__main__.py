"""`python -m ashlar_gpu`, and the commands that a wheel installs: the program `ashlar`, in this process's place."""

import os
import sys

from ashlar_gpu import _program
from ashlar_gpu._errors import Error


def main() -> int:
    try:
        program = _program.path()
    except Error as error:
        sys.stderr.write(f"ashlar: {error}\n")
        return 3
    os.execv(program, ["ashlar", *sys.argv[1:]])
    return 3  # never: execv has replaced this process, or raised


if __name__ == "__main__":
    sys.exit(main())
