"""Where the native files of this package lie: the program `ashlar` and its libraries.

They are looked for in this order: in the package itself (a wheel brings them along in `_native`), in the folder that
ASHLAR_PREFIX names (where `cmake --install` put them, or a build folder), beside the `ashlar` that PATH finds.
"""

import functools
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
from typing import List

LIBRARY_FOLDERS = ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib/ashlar", "hollow")


class NotFound(ImportError):
    """A native file is missing; the text says where it was looked for."""


def prefixes() -> List[pathlib.Path]:
    """Folders with bin/ and lib/ of an installation, best first."""
    package = pathlib.Path(__file__).resolve().parent / "_native"
    named = os.environ.get("ASHLAR_PREFIX")
    found = [package, pathlib.Path(named)] if named else [package]
    on_path = shutil.which("ashlar")  # the name is also another project's, which has no lib/ashlar
    if on_path and (pathlib.Path(on_path).resolve().parent.parent / "lib/ashlar").is_dir():
        found.append(pathlib.Path(on_path).resolve().parent.parent)
    return [folder for folder in found if folder.is_dir()]


@functools.lru_cache(maxsize=None)
def program() -> str:
    """The path of the program `ashlar`."""
    return _find(["bin/ashlar"], "the program ashlar")


@functools.lru_cache(maxsize=None)
def library(name: str) -> str:
    """The path of a library, such as library("libashlar.so.1")."""
    return _find([f"{folder}/{name}" for folder in LIBRARY_FOLDERS], name)


@functools.lru_cache(maxsize=None)
def version() -> str:
    """That of the distribution; where none is installed that of the program, and "unknown" without one."""
    try:
        return importlib.metadata.version("ashlar-gpu")
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        return subprocess.run([program(), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    except (NotFound, OSError, subprocess.SubprocessError):
        return "unknown"


def _find(paths: List[str], what: str) -> str:
    folders = prefixes()
    for folder in folders:
        for path in paths:
            if (folder / path).is_file():
                return str(folder / path)
    looked = ", ".join(map(str, folders)) or "no folder"
    named = os.environ.get("ASHLAR_PREFIX")
    if named and not os.path.isdir(named):
        looked += f"; ASHLAR_PREFIX is {named}, which is no folder"
    raise NotFound(f"{what} was not found (looked in {looked}): install the wheel ashlar-gpu, or set ASHLAR_PREFIX to "
                   "where ashlar is installed")
