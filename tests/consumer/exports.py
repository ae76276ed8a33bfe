#!/usr/bin/env python3
"""Holds a shared library to its exports: symbols of ashlar's public names, and no other.

exports.py LIBRARY NAME...: every NAME is exported, such as ashlar::Allocator::Free.
"""

import re
import subprocess
import sys

OURS = re.compile(r"^(typeinfo (name )?for |vtable for )?ashlar::[A-Z]\w*")


def main():
    library, names = sys.argv[1], sys.argv[2:]
    lines = subprocess.check_output(["nm", "--dynamic", "--defined-only", "--demangle", library], text=True).splitlines()
    symbols = [re.sub(r"\[abi:\w+\]", "", line.split(" ", 2)[2]) for line in lines]
    foreign = [symbol for symbol in symbols if not OURS.match(symbol)]
    missing = [name for name in names if not any(symbol.startswith(name + "(") for symbol in symbols)]
    for symbol in foreign:
        print(f"{library} exports {symbol}")
    for name in missing:
        print(f"{library} does not export {name}")
    print(f"{len(symbols)} symbols, {len(foreign)} foreign, {len(missing)} missing")
    sys.exit(1 if foreign or missing or not symbols else 0)


if __name__ == "__main__":
    main()
