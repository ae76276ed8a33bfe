#!/usr/bin/env python3
"""Plants a fault in each top folder, one at a time, and shows that what is selected for it catches it.

    plant_faults.py                 # all, in this checkout, which has to be clean; each is taken out again
    plant_faults.py hollow bench    # those of these folders

A fault is a small slip: an edge moved by one, a field forgotten, a figure in a document. What selects everything (cmake, tools)
is left out. Takes minutes: a fault in a library builds its library again. The last line counts; 1 where one was not caught.
"""

import argparse
import dataclasses
import os
import re
import subprocess
import sys

from tree import ROOT


@dataclasses.dataclass(frozen=True)
class Fault:
    path: str
    sound: str  # stands in the file once
    faulty: str


FAULTS = [
    Fault("include/ashlar/pmr.h", "return one != nullptr && one->allocator_ == allocator_;", "return one != nullptr;"),
    Fault("allocator/policy/size_rule.cc", "request_bytes > options.roundup_bypass_threshold_bytes",
          "request_bytes >= options.roundup_bypass_threshold_bytes"),
    Fault("kernels/optim/adamw.cc", "if (kind_ != AdamWKind::kHuggingFace) held.reset();", "held.reset();"),
    Fault("analyzer/timeline/occupancy.cc", "neighbour->is_expandable && neighbour->stream == piece.stream",
          "neighbour->is_expandable"),
    Fault("hollow/model/streams.cc", "stream->priority = priority;", "stream->priority = priority + 1;"),
    Fault("python/ashlar_gpu/_answer.py", "self.text.strip().splitlines()[:1]", "self.text.strip().splitlines()[1:2]"),
    Fault("docs/guide/diff.md", "  rounding                    511 B   399.12 KiB", "  rounding                    512 B   399.12 KiB"),
    Fault("bench/rival_tlsf.cc", "  Unlink(block);\n  return block;", "  return block;"),
    Fault("packaging/action/report.py", 'False: "out of memory"', 'False: "fits"'),
    Fault("tests/allocator/policy/slow_heap.h", "(bytes + 511) / 512 * 512", "(bytes + 510) / 512 * 512"),
]


def shell(words, **options):
    return subprocess.run(words, cwd=ROOT, text=True, **options)


def run_tests(*arguments):
    """(whether all passed, what tools/test printed)"""
    done = shell(["tools/test", "release", *arguments], env=os.environ | {"CI_BASE": "HEAD"}, stdout=subprocess.PIPE,
                 stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout


def failing(fault):
    """The tests of ctest that fail with the fault and pass without it, and the count of what was selected."""
    path = ROOT / fault.path
    sound = path.read_text(encoding="utf-8")
    if sound.count(fault.sound) != 1:
        sys.exit(f"plant_faults.py: {fault.path} has '{fault.sound}' {sound.count(fault.sound)} times: plant another fault")
    try:
        path.write_text(sound.replace(fault.sound, fault.faulty), encoding="utf-8")
        passed, text = run_tests("--changed")
    finally:
        path.write_text(sound, encoding="utf-8")
    if "the build failed" in text:
        sys.exit(f"plant_faults.py: {fault.path} does not compile with its fault:\n{text[-2000:]}")
    count = (re.findall(r"^\d+ passed, \d+ failed.*$", text, re.MULTILINE) or ["nothing ran"])[-1]
    names = re.findall(r"^\t *\d+ - (\S+) \(", text, re.MULTILINE)
    if passed or not names:
        return [], count
    _, text = run_tests("-R", "^(" + "|".join(map(re.escape, names)) + ")$")
    return [name for name in names if not re.search(rf"^\t *\d+ - {re.escape(name)} \(", text, re.MULTILINE)], count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*")
    folders = parser.parse_args().folders
    if shell(["git", "status", "--porcelain"], capture_output=True).stdout:
        sys.exit("plant_faults.py: this checkout has changes of its own: commit them first")
    missed = 0
    for fault in FAULTS:
        if not folders or fault.path.split("/")[0] in folders:
            tests, count = failing(fault)
            missed += not tests
            print(f"{'caught' if tests else 'MISSED'}: {fault.path}: {count}: {' '.join(tests)}", flush=True)
    print(f"{missed} of {len(FAULTS)} faults were not caught" if not folders else f"{missed} were not caught")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
