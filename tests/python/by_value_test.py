"""Functions by value: written by one process whose __main__ has them, called in another that has nothing of it."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "python")

WRITER = """
import sys
from ashlar_gpu import _by_value
{code}
with open(sys.argv[1], "wb") as out:
    out.write(_by_value.dumps({what}))
"""
READER = """
import sys
from ashlar_gpu import _by_value
with open(sys.argv[1], "rb") as data:
    value = _by_value.loads(data.read())
print(({how}))
"""


def run(code, file):
    environment = {**os.environ, "PYTHONPATH": PACKAGE}
    done = subprocess.run([sys.executable, "-c", code, file], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.stdout.decode().strip(), done.stderr.decode().strip()


class ByValue(unittest.TestCase):
    def carried(self, code, what, how):
        """What `how` prints of the value `what` in the other process."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "value")
            _, error = run(WRITER.format(code=textwrap.dedent(code), what=what), file)
            self.assertEqual(error, "")
            out, error = run(READER.format(how=how), file)
            self.assertEqual(error, "")
            return out

    def test_a_function_with_globals_defaults_and_modules(self):
        code = """
        import math
        scale = 3
        def area(r, *, times=2): return scale * times * math.floor(r)
        """
        self.assertEqual(self.carried(code, "area", "value(5.5), value(5.5, times=1)"), "(30, 15)")

    def test_functions_share_their_namespace(self):
        code = """
        count = 0
        def add():
            global count
            count += 1
        def read(): return count
        def both():
            add(); add()
            return read()
        """
        self.assertEqual(self.carried(code, "both", "value()"), "2")

    def test_lambdas_and_closures(self):
        code = """
        def adder(n):
            seen = []
            def add(x):
                seen.append(x)
                return x + n, len(seen)
            return add
        """
        self.assertEqual(self.carried(code, "(adder(7), lambda x: x * 2)", "value[0](1), value[0](1), value[1](4)"),
                         "((8, 1), (8, 2), 8)")

    def test_recursion_and_a_cell_without_a_value(self):
        code = """
        def outer():
            def fact(n): return 1 if n < 2 else n * fact(n - 1)
            def early(): return late
            result = fact
            if False: late = 1
            return result, early
        """
        self.assertEqual(self.carried(code, "outer()", "value[0](5)"), "120")

    def test_classes_with_super_properties_and_static_methods(self):
        code = """
        import abc
        class Base(abc.ABC):
            def __init__(self, n): self.n = n
            @abc.abstractmethod
            def f(self): ...
        class Model(Base):
            kind = "m"
            def __init__(self, n): super().__init__(n + 1)
            def f(self): return self.twice, self.s(3), self.c()
            @property
            def twice(self): return 2 * self.n
            @staticmethod
            def s(x): return -x
            @classmethod
            def c(cls): return cls.kind
        """
        self.assertEqual(self.carried(code, "(Model, Model(4))", "value[0](1).f(), value[1].f(), type(value[1]) is value[0]"),
                         "((4, -3, 'm'), (10, -3, 'm'), True)")

    def test_data_classes_and_slots(self):
        code = """
        import dataclasses
        @dataclasses.dataclass
        class Config:
            width: int
            names: list = dataclasses.field(default_factory=list)
        class Slotted:
            __slots__ = ("a", "b")
            def __init__(self): self.a = 5
        """
        how = "value[0](3), dataclasses.replace(value[1], width=9), value[2]().a".replace("dataclasses", "__import__('dataclasses')")
        self.assertEqual(self.carried(code, "(Config, Config(1, ['x']), Slotted)", how),
                         "(Config(width=3, names=[]), Config(width=9, names=['x']), 5)")

    def test_what_is_imported_goes_by_name(self):
        self.assertEqual(self.carried("import json, collections", "(json.dumps, collections.OrderedDict, type(None), int)",
                                      "value[0] is __import__('json').dumps, value[2:]"),
                         "(True, (<class 'NoneType'>, <class 'int'>))")

    def test_what_cannot_be_carried_is_named_in_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            code = "import threading\nlock = threading.Lock()\ndef f(): return lock"
            _, error = run(WRITER.format(code=code, what="f"), os.path.join(folder, "value"))
        self.assertRegex(error.splitlines()[-1], r"Error: this cannot be carried .*lock.*: make it inside the function")


if __name__ == "__main__":
    unittest.main()
