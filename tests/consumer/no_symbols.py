#!/usr/bin/env python3
"""Holds a library to know nothing of a namespace: it neither defines nor wants a symbol of it.

no_symbols.py NAMESPACE LIBRARY OTHER: LIBRARY has none of NAMESPACE; OTHER has some, which proves that they would be seen.
"""

import re
import subprocess
import sys


def symbols_of(namespace, library):
    lines = subprocess.check_output(["nm", "--demangle", library], text=True, stderr=subprocess.DEVNULL).splitlines()
    name = re.compile(rf"\b{re.escape(namespace)}::")
    return [line for line in lines if name.search(line)]


def main():
    namespace, library, other = sys.argv[1:]
    found = symbols_of(namespace, library)
    for symbol in found[:20]:
        print(f"{library}: {symbol}")
    seen = len(symbols_of(namespace, other))
    print(f"{len(found)} symbols of {namespace} in {library}, {seen} in {other}")
    sys.exit(1 if found or not seen else 0)


if __name__ == "__main__":
    main()
