"""A program that is run again: Python's files, saves and connections go nowhere, and the program goes on.

    python3 apart_test.py [PATH OF hollow/python]
"""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from python_test import PYTHON_SIDE, TORCH


class Apart(unittest.TestCase):
    """A program that is run again: `out` is what its first run left, and stays."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = os.path.realpath(place.name)
        self.out = os.path.join(self.place, "out")
        self.own = os.path.join(self.place, "run")
        for folder in (self.out, self.own, os.path.join(self.place, "lib")):
            os.mkdir(folder)
        for name, text in TORCH.items():
            path = os.path.join(self.place, "lib", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(textwrap.dedent(text))
        with open(os.path.join(self.out, "old.txt"), "w") as file:
            file.write("first")

    def run_program(self, code):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([PYTHON_SIDE, os.path.join(self.place, "lib")]),
                           ASHLAR_RECORD=self.own, ASHLAR_APART=os.path.join(self.own, "files"), TMPDIR=self.own)
        environment.pop("ASHLAR_HOLLOW_RUN", None)
        done = subprocess.run([sys.executable, "-B", "-c", "import os, shutil\n" + textwrap.dedent(code)], env=environment,
                              cwd=self.out, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(os.listdir(self.out), ["old.txt"], "nothing is added and nothing goes")
        with open(os.path.join(self.out, "old.txt")) as file:
            self.assertEqual(file.read(), "first")
        return done.stdout.split()

    def told(self):
        with open(os.path.join(self.own, "files.written")) as lines:
            return [os.path.relpath(line.strip(), self.out) for line in lines]

    def test_what_is_written_is_found_again_and_the_first_runs_files_stay(self):
        out = self.run_program("""
            import pathlib
            with open("old.txt", "w") as file: file.write("again")
            print(open("old.txt").read())
            pathlib.Path("sub").mkdir()
            os.makedirs("sub/deep/er", exist_ok=True)
            pathlib.Path("sub/deep/new.txt").write_text("made")
            print(pathlib.Path("sub/deep/new.txt").read_text(), os.path.isdir("sub/deep"), os.listdir("sub/deep"))
            os.close(os.open("fd.txt", os.O_CREAT | os.O_WRONLY))
            print(os.path.getsize("fd.txt"), sorted(os.listdir(".")))
        """)
        self.assertEqual(" ".join(out), "again made True ['er', 'new.txt'] 0 ['fd.txt', 'old.txt', 'sub']")
        self.assertEqual(self.told(), ["old.txt", "sub/deep/new.txt", "fd.txt"])

    def test_a_file_that_is_added_to_has_what_it_had(self):
        out = self.run_program("""
            with open("old.txt", "a") as file: file.write("+more")
            print(open("old.txt").read())
            with open("old.txt", "r+b") as file: file.write(b"F")
            print(open("old.txt").read())
        """)
        self.assertEqual(out, ["first+more", "First+more"])

    def test_what_is_removed_and_moved_stays_where_it_lies(self):
        out = self.run_program("""
            os.remove("old.txt")
            os.rename("old.txt", "moved.txt")
            print(open("moved.txt").read())
            with open("part", "w") as file: file.write("whole")
            os.replace("part", "old.txt")
            print(open("old.txt").read(), os.path.exists("part"))
            os.chmod("moved.txt", 0o600)
            shutil.rmtree(os.path.abspath("."))
        """)
        self.assertEqual(out, ["first", "whole", "False"])

    def test_errors_are_those_of_the_place(self):
        out = self.run_program("""
            for call in (lambda: open("none/x", "w"), lambda: open("none"), lambda: os.mkdir("old.txt"), lambda: os.remove("none"),
                         lambda: open("old.txt", "x"), lambda: open(".", "w"), lambda: os.rename("none", "x")):
                try: print(call())
                except OSError as error: print(type(error).__name__)
        """)
        self.assertEqual(out, ["FileNotFoundError"] * 2 + ["FileExistsError", "FileNotFoundError", "FileExistsError",
                                                           "IsADirectoryError", "FileNotFoundError"])

    def test_functions_stand_in_classes_as_the_built_in_ones_do(self):
        out = self.run_program("""
            class Files:
                opened, listed = open, os.listdir
            print(Files().opened("old.txt").read(), Files().listed("."))
            import tempfile, logging, gzip
            with tempfile.NamedTemporaryFile() as file: print(file.name.startswith(os.environ["TMPDIR"]))
            logging.basicConfig(filename="log.txt"); logging.warning("seen")
            with gzip.open("z.gz", "wt") as file: file.write("packed")
            print(gzip.open("z.gz", "rt").read())
        """)
        self.assertEqual(out, ["first", "['old.txt']", "True", "packed"])

    def test_saves_and_connections_go_nowhere(self):
        with open(os.path.join(self.place, "lib", "torch", "__init__.py"), "a") as file:
            file.write("def save(obj, f, **more): open(f, 'w').write(obj) if isinstance(f, str) else f.write(obj)\n")
        out = self.run_program("""
            import io, socket, torch
            torch.save("weights", "model.pt")
            buffer = io.StringIO()
            torch.save("kept", buffer)
            print(os.path.exists("model.pt"), buffer.getvalue())
            with socket.socket() as listening, socket.socket() as sending:
                listening.bind(("127.0.0.1", 0)); listening.listen()
                sending.connect(listening.getsockname())
                print(sending.getpeername() == listening.getsockname())
            with socket.socket() as sending:
                try: sending.connect(("192.0.2.1", 80))
                except OSError as error: print(error.errno)
        """)
        self.assertEqual(out, ["False", "kept", "True", "101"])
        self.assertEqual(self.told(), ["model.pt"])
        with open(os.path.join(self.own, "files.unsent")) as lines:
            self.assertEqual(lines.read(), "192.0.2.1:80\n")

    def test_a_fork_that_was_stopped_calls_what_is_to_be_called_and_takes_nothing_down(self):
        code = """
            import atexit, sys
            from ashlar_hollow import fork_server
            end = fork_server._End()
            atexit.register(print, "called")
            class Kept:
                def __del__(self): os.write(1, b"down\\n")
            kept = Kept()
            if %s: end.stopped()
            sys.exit(0)
        """
        self.assertEqual(self.run_program(code % True), ["called"])
        self.assertEqual(sorted(self.run_program(code % False)), ["called", "down"], "one that ends by itself")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PYTHON_SIDE = sys.argv.pop()
    unittest.main()
