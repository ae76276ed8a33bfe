"""The process in which a function runs for dry_run: main(file) loads what _by_value.dumps wrote, and calls it."""

import sys
from typing import Any, Tuple

from ashlar_gpu import _by_value

# What the interpreter is given; its arguments are the file and the folders of sys.path.
START = "import sys; sys.path[:] = sys.argv[2:]; from ashlar_gpu import _call; _call.main(sys.argv[1])"


def main(file: str) -> None:
    with open(file, "rb") as data:
        argv, call = _by_value.loads(data.read())  # sys.argv first: what the rest imports may read it
    sys.argv[:] = argv
    function, arguments, keywords = _by_value.loads(call)
    function(*arguments, **keywords)


def payload(function: Any, arguments: Tuple[Any, ...], keywords: Any) -> bytes:
    return _by_value.dumps((list(sys.argv), _by_value.dumps((function, arguments, keywords))))
