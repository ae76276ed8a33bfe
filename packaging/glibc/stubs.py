#!/usr/bin/env python3
"""Libraries to link against, so that what is linked loads on an older glibc than this machine's.

stubs.py --glibc 2.28 --cxx g++ --out FOLDER [--show]

A glibc keeps the versions of a function that older programs ask for: pthread_create is there as GLIBC_2.34 and as
GLIBC_2.2.5. A linker takes the newest. FOLDER gets a libc.so.6, libm.so.6 and so on that have no code, and each name
once, in its newest version up to the one given. `-L FOLDER` then makes g++ link against these. A name that is younger
comes from the functions beside this script (FOLDER/libyounger.a), else the link fails and names it.

Functions that moved into libc.so.6 with glibc 2.34 are put back into the library where an older glibc has them.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LINE = re.compile(r"\s*\d+:\s+(?P<value>[0-9a-f]+)\s+(?P<size>\w+)\s+(?P<type>FUNC|IFUNC|OBJECT)\s+"
                  r"(?P<binding>GLOBAL|WEAK)\s+DEFAULT\s+\d+\s+(?P<name>[^@\s]+)@@?(?P<version>GLIBC_[\d.]+)")
LIBRARIES = {"c": "libc.so.6", "m": "libm.so.6", "dl": "libdl.so.2", "pthread": "libpthread.so.0", "rt": "librt.so.1"}
# Where the functions lay that libc.so.6 took over.
MOVED = {"dl": r"dl\w+", "pthread": r"_*(pthread|sem|thrd|mtx|cnd|tss)_\w+|call_once",
         "rt": r"(shm|mq|timer|aio|lio)_\w+"}

Symbol = collections.namedtuple("Symbol", "name version binding is_data value size")


def number(version):
    return tuple(map(int, version.removeprefix("GLIBC_").split(".")))


def versions(library):
    """Each name of a library with all its versions."""
    text = subprocess.check_output(["readelf", "--wide", "--dyn-syms", library], text=True)
    found = collections.defaultdict(list)
    for match in filter(None, map(LINE.match, text.splitlines())):
        found[match["name"]].append(Symbol(match["name"], match["version"], match["binding"].lower().replace("global", "globl"),
                                           match["type"] == "OBJECT", match["value"], int(match["size"], 0)))
    return found


def up_to(symbols, limit):
    """The newest of a name's versions that is no younger than the limit, and whether a younger one has taken its place."""
    old = [symbol for symbol in symbols if number(symbol.version) <= limit]
    newest = max(old, key=lambda symbol: number(symbol.version), default=None)
    return newest, len(old) < len(symbols)


def home(name, has_younger):
    return next((short for short, pattern in MOVED.items() if has_younger and re.fullmatch(pattern, name)), "c")


def symbols_of(system, limit):
    """What each library of the older glibc has, as far as this machine's tells."""
    found = {short: [] for short in LIBRARIES}
    for source in ("c", "m"):
        for name, all_versions in versions(system(LIBRARIES[source])).items():
            symbol, has_younger = up_to(all_versions, limit)
            if symbol:
                found[home(name, has_younger) if source == "c" else source].append(symbol)
    return found


def assembly(symbols, only_by_version):
    """Names without code. Data that has several names keeps one address, and the weak ones stay weak: a linker that copies
    `environ` into a program then gives the copy its strong name `__environ` as well, by which glibc itself uses it."""
    out = [".text"]
    out += [f".globl {s.name}\n.type {s.name}, %function\n{s.name}: .byte 0" for s in symbols if not s.is_data]
    out += [f".globl hidden_{s.name}\nhidden_{s.name}: .byte 0\n.symver hidden_{s.name}, {s.name}@{s.version}"
            for s in only_by_version]
    out.append(".data")
    addresses = collections.defaultdict(list)
    for symbol in symbols:
        if symbol.is_data:
            addresses[symbol.value].append(symbol)
    for same in addresses.values():
        out.append(".balign 32")
        out += [f".{s.binding} {s.name}\n.type {s.name}, %object\n.size {s.name}, {s.size}\n{s.name}:" for s in same]
        out.append(f".skip {max(max(s.size for s in same), 1)}")
    return "\n".join(out) + '\n.section .note.GNU-stack, "", %progbits\n'


def version_script(symbols):
    nodes = collections.defaultdict(list)
    for symbol in symbols:
        nodes[symbol.version].append(symbol.name)
    hidden = " local: hidden_*;"
    out = ""
    for version in sorted(nodes, key=number):
        out += f"{version} {{ global: {'; '.join(sorted(nodes[version]))};{hidden} }};\n"
        hidden = ""
    return out


def make_library(cxx, folder, short, symbols):
    name = LIBRARIES[short]
    # A program's start is for start_main.cc alone: as a version that is no default, `-lc` gives it to nobody else.
    only_by_version = [symbol for symbol in symbols if symbol.name == "__libc_start_main"]
    symbols = [symbol for symbol in symbols if symbol not in only_by_version]
    (folder / f"{name}.s").write_text(assembly(symbols, only_by_version))
    (folder / f"{name}.map").write_text(version_script(symbols))
    subprocess.check_call([cxx, "-shared", "-nostdlib", f"-Wl,-soname,{name}", f"-Wl,--version-script={folder}/{name}.map",
                           "-o", folder / name, "-x", "assembler", folder / f"{name}.s"])


def make_younger(cxx, folder, base):
    """The functions that an older glibc lacks, of the sources beside this script."""
    objects = []
    for source in sorted(HERE.glob("*.cc")):
        objects.append(folder / f"{source.stem}.o")
        subprocess.check_call([cxx, "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-Wall", "-Wextra",
                               f'-DASHLAR_GLIBC_BASE="{base}"', "-c", source, "-o", objects[-1]])
    (folder / "libyounger.a").unlink(missing_ok=True)
    subprocess.check_call(["ar", "rcsD", folder / "libyounger.a", *objects])


def make_names(folder, system):
    """What -lc, -lm and their like find: a younger name of ours, else that of an older glibc, in the library that had it."""
    libc = system(LIBRARIES["c"])
    loader = re.search(r"NEEDED.*\[(ld-linux.*)\]", subprocess.check_output(["readelf", "--dynamic", libc], text=True))[1]
    as_needed = " ".join([*(f"{folder}/{LIBRARIES[short]}" for short in ("pthread", "dl", "rt")), system(loader)])
    (folder / "libc.so").write_text(f"GROUP ( {folder}/libyounger.a {folder}/libc.so.6 {system('libc_nonshared.a')} "
                                    f"AS_NEEDED ( {as_needed} ) )\n")
    for short, name in LIBRARIES.items():
        if short != "c":
            (folder / f"lib{short}.so").unlink(missing_ok=True)
            (folder / f"lib{short}.so").symlink_to(name)


def make(cxx, folder, limit):
    def system(name):
        return subprocess.check_output([cxx, f"-print-file-name={name}"], text=True).strip()

    folder.mkdir(parents=True, exist_ok=True)
    found = symbols_of(system, limit)
    for short, symbols in found.items():
        make_library(cxx, folder, short, symbols)
    make_younger(cxx, folder, min((symbol.version for symbol in found["c"]), key=number))
    make_names(folder, system)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--glibc", required=True, metavar="2.N", help="the oldest glibc that is to load what is linked")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    found = make(arguments.cxx, arguments.out.resolve(), number(arguments.glibc))
    print(", ".join(f"{LIBRARIES[short]}: {len(symbols)} names" for short, symbols in found.items()))


if __name__ == "__main__":
    sys.exit(main())
