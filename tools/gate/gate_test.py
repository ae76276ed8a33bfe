#!/usr/bin/env python3
"""What the gate is held to: its graph of folders, its selection, its counts and its units, on made-up trees and changes.

For the graph of this tree there is an oracle that shares nothing with it: tests mirror the tree by the last part of a
folder's name, so a change in B must select the tests named after A wherever A includes B.
"""

import os
import pathlib
import subprocess
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True

import folder_graph
import proof
import results
import selection
import units
from tree import ROOT

FLOORS = """```floors
F0 a/base <-
F1 a/left <- a/base
F1 a/right <- a/base
F2 a/roof <- a/left
F3 tests <- *
```
```reads
all <- CMakeLists.txt cmake
none <- .gitignore
tests/program <- a/roof docs
part/page <- page
```
"""
TREE = {
    "docs/internals/floors.md": FLOORS, "CMakeLists.txt": "", "cmake/x.cmake": "", ".gitignore": "", "docs/x.md": "",
    "docs/named.md": "", "page/x.ts": "", "a/CMakeLists.txt": "", "a/base/x.h": "", "a/left/x.h": '#include "a/base/x.h"\n',
    "a/right/x.h": '#include "a/base/x.h"\n', "a/roof/x.h": '#include "a/left/x.h"\n', "tests/shared.h": '#include "a/right/x.h"\n',
    "tests/allocator/base/CMakeLists.txt": "", "tests/allocator/base/x_test.cc": '#include "a/base/x.h"\n',
    "tests/allocator/base/helper.h": '#include "a/left/x.h"\n', "tests/left/x_test.cc": '#include "tests/allocator/base/helper.h"\n',
    "tests/right/x_test.cc": '#include "tests/shared.h"\nint a = ASHLAR_SOURCE_DIR "/docs/named.md";\n',
    "tests/program/x_test.py": "", "tests/program/deep/CMakeLists.txt": "", "tests/program/deep/x.cc": "",
}


def tests_of(graph, *files):
    """The folders of tests that these changes select; None where it is everything."""
    nodes = selection.select(graph, files).nodes
    return nodes if nodes is None else {node for node in nodes if node.startswith("tests/")}


class FolderGraphTest(unittest.TestCase):
    def setUp(self):
        self.graph = folder_graph.read_graph(proof.folder(TREE))

    def test_what_stands_on_a_folder_is_selected_and_nothing_else(self):
        self.assertEqual(tests_of(self.graph, "a/base/x.h"), {"tests/allocator/base", "tests/left", "tests/right", "tests/program"})
        self.assertEqual(tests_of(self.graph, "a/left/x.h"), {"tests/allocator/base", "tests/left", "tests/program"})
        self.assertEqual(tests_of(self.graph, "a/roof/x.h"), {"tests/program"})
        self.assertEqual(tests_of(self.graph, "a/right/x.h"), {"tests/right"})

    def test_a_test_stands_on_the_headers_of_other_tests_but_not_on_what_those_run(self):
        self.assertEqual(tests_of(self.graph, "tests/allocator/base/helper.h"), {"tests/allocator/base", "tests/left"})
        self.assertEqual(tests_of(self.graph, "tests/shared.h"), {"tests/right"})
        self.assertEqual(tests_of(self.graph, "tests/program/deep/x.cc"), {"tests/program/deep"})

    def test_files_that_tests_name_or_read(self):
        self.assertEqual(tests_of(self.graph, "docs/named.md"), {"tests/right", "tests/program"})
        self.assertEqual(tests_of(self.graph, "docs/x.md"), {"tests/program"})
        self.assertEqual(tests_of(self.graph, "page/x.ts"), set())

    def test_a_file_beside_towers_belongs_to_each(self):
        self.assertEqual(self.graph.nodes_of("a/CMakeLists.txt"), {"a/base", "a/left", "a/right", "a/roof"})

    def test_the_build_and_what_nothing_is_known_of_select_everything(self):
        for path in ("CMakeLists.txt", "cmake/x.cmake", "cmake/gone.cmake", "unknown/x", "unknown.txt"):
            self.assertIsNone(tests_of(self.graph, "a/right/x.h", path), path)
        self.assertEqual(tests_of(self.graph, ".gitignore"), set())

    def test_parts_are_asked_for_by_their_own_files(self):
        self.assertEqual(selection.parts_of(self.graph, ["page/x.ts", "a/base/x.h"]), ["page"])
        self.assertEqual(selection.parts_of(self.graph, ["a/base/x.h"]), [])

    def test_a_line_that_cannot_be_read_is_an_error(self):
        for line in ("tests/program reads a/roof", "tests/program <- docs", "x <- gone"):
            with self.assertRaises(folder_graph.GraphError, msg=line):
                folder_graph.read_graph(proof.folder(TREE | {"docs/internals/floors.md": FLOORS.replace("part/page", line + "\npart/page")}))
        with self.assertRaises(folder_graph.GraphError):
            folder_graph.read_graph(proof.folder({"a/x": ""}))


MIRRORED = {"include": "tests/allocator/api/c", "include/ashlar": "tests/allocator/api", "hollow/interpose": "tests/hollow/record",
            "commands/api": "tests/allocator/api", "conformance": "tests/hollow", "estimator/workloads": "tests/estimator/models",
            "docs/examples": "tests/lint", "tests": "tests/analyzer/formats", "bench": "bench"}
WITHOUT_A_TEST_OF_CTEST = {"packaging/glibc"}  # tools/test packages


def mirror(folder):
    """The tests of a folder, by its name alone: tests/<folder>, else that of the folder that it lies in."""
    if folder in MIRRORED:
        return MIRRORED[folder]
    places = [pathlib.PurePath("tests", folder), *pathlib.PurePath("tests", folder).parents]
    return next(str(place) for place in places if (ROOT / place / "CMakeLists.txt").is_file())


class ThisTreeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.graph = folder_graph.read_graph(ROOT)
        cls.floors = folder_graph.floors.read_floors(ROOT)[0]

    def test_every_arrow_of_the_floors_selects_the_tests_of_what_stands_on_it(self):
        count = 0
        for above, floor in self.floors.items():
            for below in floor.arrows if not floor.used else ():  # `*` is no arrow: tests and benches have those of their sources
                nodes = selection.select(self.graph, [f"{below}/made_up.cc"]).nodes
                self.assertLessEqual({above, mirror(above)}, nodes, f"{above} <- {below}")
                count += 1
        self.assertGreater(count, 150)

    def test_every_folder_selects_its_own_tests(self):
        for folder in set(self.floors) - WITHOUT_A_TEST_OF_CTEST:
            self.assertTrue((ROOT / mirror(folder)).is_dir(), f"no tests of {folder}")
            self.assertIn(mirror(folder), selection.select(self.graph, [f"{folder}/made_up.cc"]).nodes, folder)

    def test_every_line_of_reads_selects_its_reader(self):
        for name, targets in folder_graph.reads_of(ROOT).items():
            for target in targets:
                if name == folder_graph.ALL:
                    self.assertIsNone(selection.select(self.graph, [target]).nodes, target)
                elif name.startswith(folder_graph.PART):
                    self.assertIn(name[len(folder_graph.PART):], selection.parts_of(self.graph, [target]))
                elif name != folder_graph.NONE:
                    self.assertIn(name, selection.select(self.graph, [target + "/made_up"]).nodes, f"{name} <- {target}")

    def test_every_file_of_the_tree_is_known(self):
        tracked = selection.paths(selection.git(ROOT, "ls-files", "-z"))
        named = self.graph.whole + self.graph.unseen
        unknown = [path for path in tracked if not any(folder_graph.is_below(path, name) for name in named)
                   and not self.graph.nodes_of(path)]
        self.assertEqual(unknown, [], f"a line of ```reads in {folder_graph.floors.FLOORS_FILE} says what reads these")


class ChangeTest(unittest.TestCase):
    """A branch that left main, in a checkout whose origin is main."""

    def setUp(self):
        self.root = proof.folder({"kept": "1", "edited": "1", "renamed": "1", "removed": "1"})
        self.git("init", "-q", "-b", "main")
        self.commit()
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.base = self.git("rev-parse", "HEAD")

    def git(self, *words):
        name = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", "-C", str(self.root), *name, *words], check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def change(self, base=""):
        return selection.change_of(self.root, {"CI_BASE": base})

    def make_a_change(self):
        (self.root / "edited").write_text("2", encoding="utf-8")
        (self.root / "removed").unlink()
        (self.root / "renamed").rename(self.root / "new name")

    def test_all_that_a_branch_changed_and_what_is_not_committed(self):
        self.make_a_change()
        wanted = ["edited", "new name", "removed", "renamed"]
        self.assertEqual(self.change().files, wanted)
        self.commit()
        self.assertEqual(self.change().files, wanted)
        (self.root / "later").write_text("", encoding="utf-8")
        self.assertEqual(self.change().files, ["edited", "later", "new name", "removed", "renamed"])

    def test_what_came_to_main_meanwhile_is_not_of_the_branch(self):
        self.git("checkout", "-q", "-b", "branch")
        self.make_a_change()
        self.commit()
        self.git("checkout", "-q", "main")
        (self.root / "kept").write_text("2", encoding="utf-8")
        self.commit()
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.git("checkout", "-q", "branch")
        self.assertNotIn("kept", self.change().files)

    def test_a_base_by_name(self):
        self.make_a_change()
        self.commit()
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.assertIsNone(self.change().files)  # it has landed
        self.assertEqual(len(self.change(self.base).files), 4)
        self.assertIsNone(self.change("0" * 40).files)
        self.assertIsNone(self.change("no such name").files)

    def test_where_nothing_can_be_compared_it_is_everything(self):
        self.git("update-ref", "-d", "refs/remotes/origin/main")
        self.make_a_change()
        self.assertIsNone(self.change().files)
        outside = proof.folder({"a": ""})
        with unittest.mock.patch.dict(os.environ, GIT_CEILING_DIRECTORIES=str(outside.parent)):  # tests' files lie in a checkout
            self.assertIsNone(selection.change_of(outside, {}).files)


class UnitsTest(unittest.TestCase):
    TREE = {"a/x.cc": '#include "a/x.h"\n', "a/y.cc": '#include "a/y.h"\n', "a/z.cc": "", "a/x.h": '#include "a/low.h"\n',
            "a/y.h": '#include "a/low.h"\n', "a/low.h": ""}
    UNITS = {"one": ["a/x.cc"], "two": ["a/y.cc", "a/z.cc"]}

    def touched(self, path, all_that_include):
        return units.touched(self.UNITS, [path], all_that_include, proof.folder(self.TREE))

    def test_a_unit_with_the_source_or_one_that_sees_the_header(self):
        self.assertEqual(self.touched("a/z.cc", False), ["two"])
        self.assertEqual(self.touched("a/y.h", False), ["two"])
        self.assertEqual(self.touched("a/low.h", False), ["one"])
        self.assertEqual(self.touched("docs/x.md", False), [])

    def test_every_unit_that_includes_it(self):
        self.assertEqual(self.touched("a/low.h", True), ["one", "two"])
        self.assertEqual(self.touched("a/x.h", True), ["one"])


class ResultsTest(unittest.TestCase):
    def test_what_becomes_of_a_run_of_every_kind(self):
        results.prove()


if __name__ == "__main__":
    os.chdir(pathlib.Path(__file__).parent)
    unittest.main()
