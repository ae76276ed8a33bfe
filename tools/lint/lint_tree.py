"""What the lints share: the files of a tree, findings, and the rule that a lint proves itself before it judges.

A lint is a function check(root) -> findings and a list of samples. A sample is a small tree that breaks one rule; the
lint must find exactly that rule in it, and nothing in the tree without the break.
"""

import argparse
import dataclasses
import os
import pathlib
import sys
import tempfile

PRODUCT_FOLDERS = ("include", "allocator", "hollow", "kernels", "analyzer", "commands", "console", "launcher", "estimator")
SKIPPED_FOLDERS = {"build", "__pycache__", "node_modules"}
CODE_SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".c", ".cpp", ".hpp"}


@dataclasses.dataclass(frozen=True)
class Finding:
    rule: str
    path: str
    line: int
    text: str  # what is wrong, and the mend

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text} [{self.rule}]"


@dataclasses.dataclass(frozen=True)
class Sample:
    rule: str  # the rule that the files break; "" where they break none
    files: dict


def files(root, suffixes=None):
    """Paths relative to root, sorted; build folders and dot-folders are not ours to judge."""
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS and not name.startswith(".")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(path for path in found if suffixes is None or pathlib.Path(path).suffix in suffixes)


def lines(root, path):
    """The numbered lines of a file; none where it is not text."""
    try:
        text = (pathlib.Path(root) / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    return list(enumerate(text.splitlines(), start=1))


def write_tree(root, contents):
    for path, text in contents.items():
        target = pathlib.Path(root) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def prove(name, check, samples):
    """False, with a line that says why, where the lint misses a bad sample or blames a good one."""
    for sample in samples:
        with tempfile.TemporaryDirectory() as root:
            write_tree(root, sample.files)
            rules = {finding.rule for finding in check(root)}
        if rules != ({sample.rule} if sample.rule else set()):
            wanted = sample.rule or "nothing"
            print(f"{name}: self-test failed: wanted {wanted}, found {sorted(rules) or 'nothing'} in {sample.files}")
            return False
    broken = len({sample.rule for sample in samples if sample.rule})
    print(f"{name}: self-test passed: {broken} rules seen to fail on bad samples")
    return True


def main(name, check, samples):
    parser = argparse.ArgumentParser(description=f"lint: {name}")
    parser.add_argument("--self-test", action="store_true", help="only prove the lint on its samples")
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], help="the repository root")
    arguments = parser.parse_args()
    if not prove(name, check, samples):
        sys.exit(2)
    if arguments.self_test:
        return
    findings = check(arguments.root)
    for finding in findings:
        print(finding)
    print(f"{name}: {len(findings)} findings")
    sys.exit(1 if findings else 0)
