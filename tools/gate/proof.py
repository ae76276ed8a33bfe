"""What the scripts of the gate prove themselves with before they judge: a folder made of texts, and a comparison."""

import atexit
import pathlib
import shutil
import sys
import tempfile

import tree  # noqa: F401  so that the lints are found
import lint_tree


def folder(files):
    """A folder with these files, path -> text, until the process ends."""
    root = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    lint_tree.write_tree(root, files)
    return root


def same(what, found, wanted):
    """Ends the process with 2 where they differ."""
    if found != wanted:
        print(f"{pathlib.Path(sys.argv[0]).name}: self-test failed: {what} should be\n  {wanted}\nand is\n  {found}")
        sys.exit(2)
