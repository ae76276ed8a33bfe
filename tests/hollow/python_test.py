"""The Python side without a GPU and without PyTorch: a small stand-in for torch tells what it was asked.

    python3 python_test.py [PATH OF hollow/python]
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON_SIDE = os.path.join(ROOT, "hollow", "python")

# What history.py uses of torch, as PyTorch 2.1 and later have it; `use` is CUDA's first use.
TORCH = {
    "torch/__init__.py": """
        __version__, strided = "2.9.9", "strided"
        from torch import _C, cuda
        def __getattr__(name):
            if name != "_inductor": raise AttributeError(name)
            import torch._inductor
            return torch._inductor
    """,
    "torch/_inductor.py": "exec('made = 1')\n",
    "torch/_C.py": """
        import contextlib
        class TensorBase: pass
        class StorageBase: pass
        class _FunctionBase: pass
        DisableTorchFunction = _DisableTorchDispatch = contextlib.nullcontext
        observers, peak, resets = [], {"allocated_bytes.all.peak": 0, "reserved_bytes.all.peak": 0}, []
        def _cuda_attach_out_of_memory_observer(observer): observers.append(observer)
        def _cuda_resetPeakMemoryStats(device): peak.update({key: 0 for key in peak})
        def _cuda_memorySnapshot(pool):
            from torch.cuda import memory
            return dict(memory.more, events=list(memory.events), recorded=list(memory.recorded))
    """,
    "torch/cuda/__init__.py": """
        from torch import _C
        from torch.cuda import memory
        queued = []
        class OutOfMemoryError(RuntimeError): pass
        def _lazy_call(call): queued.append(call)
        def use():
            while queued: queued.pop(0)()
        def device_count(): return 2
        def memory_stats(device=0): return dict(_C.peak, num_ooms=memory.ooms) if device == 0 else {}
        def fail():
            memory.events.append("oom")
            memory.ooms += 1
            for observer in _C.observers: observer(0, 77, 0, 0)
            memory.events.append("unwound")
            raise OutOfMemoryError("tried to allocate 77 bytes")
    """,
    "torch/cuda/memory.py": """
        events, recorded, ooms, more = [], [], 0, {}
        def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=1):
            recorded.append((enabled, stacks, max_entries))
        def _snapshot():
            import torch
            hasattr(torch, "_inductor")
            return torch._C._cuda_memorySnapshot(None)
    """,
}

# A function of ours, as it stands among the package's files, which passes calls on.
OF_OURS = """
    import os, sys, traceback
    sys.path.insert(0, %r)
    from ashlar_hollow import unseen

    names = {}
    exec(compile("def ours(call, *args, **kwargs): return call(*args, **kwargs)", unseen.HERE + "x.py", "exec"), names)
    ours = unseen.unseen(names["ours"])
    plain = names["ours"]

    def refuse(what):
        raise ValueError(what)

    def frames(call):
        try:
            call()
        except BaseException as error:
            return [frame.name for frame in traceback.extract_tb(error.__traceback__)], error
"""


class Run(object):
    """A program of its own process, and what it left."""

    def __init__(self, code, prepare=None, **environment):
        with tempfile.TemporaryDirectory() as place:
            self._run(place, code, prepare, environment)

    def _run(self, place, code, prepare, environment):
        for name, text in list(TORCH.items()) + [("program.py", code)] + list((prepare or {}).items()):
            path = os.path.join(place, "lib", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write(textwrap.dedent(text))
        self.left = os.path.join(place, "left")
        os.mkdir(self.left)
        paths = os.pathsep.join([PYTHON_SIDE, os.path.join(place, "lib")])
        all_of_it = dict(os.environ, PYTHONPATH=paths, PYTHONDONTWRITEBYTECODE="1", ASHLAR_RECORD=self.left)
        all_of_it.pop("ASHLAR_HOLLOW_RUN", None)
        all_of_it.update(environment)
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(place, "lib", "program.py")],
            env=all_of_it,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        self.out, self.err = self.process.communicate(timeout=60)
        self.code = self.process.returncode
        self.pid = self.process.pid
        self.left = {name: self._read(os.path.join(self.left, name)) for name in os.listdir(self.left)}

    @staticmethod
    def _read(path):
        with open(path, "rb") as data:
            return data.read()

    def files(self):
        return sorted(name.replace(str(self.pid), "PID") for name in self.left)

    def info(self):
        return json.loads(self.left["info-%d.json" % self.pid].decode())

    def snapshot(self, name):
        return pickle.loads(self.left[name % self.pid])


USES = "import torch, os, sys, signal\ntorch.cuda.use()\ntorch.cuda.memory.events.append('made')\n"


class Unseen(unittest.TestCase):
    def run_program(self, code):
        code = textwrap.dedent(OF_OURS % PYTHON_SIDE) + textwrap.dedent(code)
        done = subprocess.run([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_tracebacks_hold_the_program_s_frames_alone(self):
        out = self.run_program("""
            print(*frames(lambda: plain(refuse, 1))[0])
            print(*frames(lambda: ours(refuse, 1))[0])
            print(*frames(lambda: list(map(ours, [refuse], [1])))[0])                # called by C, as an operation is
            print(*frames(lambda: ours(lambda: plain(ours, refuse, 1)))[0])
            print(*frames(lambda: ours(sys.exit, 3))[0])
        """)
        self.assertEqual(out, ["frames <lambda> ours refuse", "frames <lambda> refuse", "frames <lambda> refuse",
                               "frames <lambda> <lambda> ours refuse", "frames <lambda>"])

    def test_the_error_is_the_program_s_own(self):
        out = self.run_program("""
            mine = KeyError("mine")
            def raises(): raise mine
            print(frames(lambda: ours(raises))[1] is mine, mine.__context__)
            try:
                1 / 0
            except ZeroDivisionError:
                print(repr(frames(lambda: ours(refuse, 1))[1].__context__))
            print(sys.exc_info())
            class Held(object): pass
            import weakref
            held = Held()
            gone = weakref.ref(held)
            frames(lambda one=held: ours(refuse, one))
            del held
            print(gone())                                                            # and holds nothing more
        """)
        self.assertEqual(out, ["True None", "ZeroDivisionError('division by zero')", "(None, None, None)", "None"])

    def test_nothing_of_ours_is_on_the_stack_during_a_call(self):
        out = self.run_program("""
            told = []
            def stack(): return [frame.name for frame in traceback.extract_stack()]
            exec(compile('def before(of): told.append("before %s" % of.name); return lambda: told.append("after")\\n'
                         'def change(of, values): return values + [of.name]', unseen.HERE + "x.py", "exec"), globals())
            class Class(object):
                name = "x"
                def method(self, *args, **kwargs):
                    told.append("call")
                    if args == (0,): raise ValueError("mine")
                    return args, kwargs, stack()
                def __call__(self, values): return values, stack()
                other = method
            Class.method = unseen.during(Class.method, before)
            Class.__call__ = unseen.during(Class.__call__, before, change)
            one = Class()
            print(one.method(1, two=2), told)
            del told[:]
            print(one([1]), told)
            del told[:]
            print(*frames(lambda: one.method(0))[0], told)
            print(one(1)[0])                                        # which cannot be changed
            print(Class.method.__name__, Class.method(one, 1)[:2], Class.__call__(one, [1])[0])
            class Child(Class):
                def method(self): return super(Child, self).method(3)
            print(Child().method())
        """)
        self.assertEqual(out, [
            "((1,), {'two': 2}, ['<module>', 'method', 'stack']) ['before x', 'call', 'after']",
            "([1, 'x'], ['<module>', '__call__', 'stack']) ['before x', 'after']",
            "frames <lambda> method ['before x', 'call', 'after']",
            "1",
            "method ((1,), {}) [1, 'x']",
            "((3,), {}, ['<module>', 'method', 'method', 'stack'])",
        ])

    def test_it_answers_and_is_bound_as_a_function(self):
        out = self.run_program("""
            class Class(object):
                method = ours
                def __call__(self, *args, **kwargs): return self, args, kwargs
            one = Class()
            print(one.method(2, key=3) == (one, (2,), {"key": 3}), one.method.__self__ is one, ours.__name__)
        """)
        self.assertEqual(out, ["True True ours"])


class Start(unittest.TestCase):
    def test_a_program_without_torch_is_left_alone(self):
        code = "import sys; print(' '.join(sys.modules))"
        run, plain = Run(code), Run(code, PYTHONPATH="")
        ours = {"sitecustomize"} | {m for m in run.out.split() if m.startswith("ashlar_hollow")}
        self.assertIn("ashlar_hollow.imports", ours)
        self.assertEqual(set(run.out.split()) - set(plain.out.split()) - ours, set())
        self.assertEqual((run.err, run.files()), ("", []))

    def test_the_users_own_sitecustomize_runs_and_is_the_one_that_is_there(self):
        own = {"sitecustomize.py": "print('own'); mine = 3\n"}
        run = Run("import sitecustomize; print(sitecustomize.mine)", own)
        self.assertEqual((run.out, run.err), ("own\n3\n", ""))

    def test_what_breaks_in_us_is_a_line_and_the_program_goes_on(self):
        broken = dict(TORCH, **{"torch/cuda/memory.py": "x = 1\n"})
        run = Run("import torch; print('went on')", broken)
        self.assertEqual((run.out, run.code), ("went on\n", 0))
        self.assertEqual(run.err.count("\n"), 1)
        self.assertIn("ashlar:", run.err)

    def test_reproducible_seeds_what_is_not_seeded(self):
        code = "import random; print(random.random())"
        first, second = Run(code, ASHLAR_REPRODUCIBLE="1"), Run(code, ASHLAR_REPRODUCIBLE="1")
        self.assertEqual(first.out, second.out)
        self.assertNotEqual(first.out, Run(code).out)

    def test_jax_is_told_of_a_device_where_there_is_a_hollow_one(self):
        jax = {
            "jax/__init__.py": "",
            "jax/_src/__init__.py": "",
            "jax/_src/hardware_utils.py": "def has_visible_nvidia_gpu(): return False\n",
        }
        code = "from jax._src import hardware_utils\nprint(hardware_utils.has_visible_nvidia_gpu())\n"
        self.assertEqual(Run(code, jax, ASHLAR_HOLLOW_RUN="run").out, "True\n")
        self.assertEqual(Run(code, jax).out, "False\n")

    def test_a_spec_may_be_looked_up_without_an_import(self):
        run = Run("import importlib.util as u; u.find_spec('torch'); " + USES.replace("\n", "; "))
        self.assertEqual(run.files(), ["history-PID.pickle", "info-PID.json"])


class History(unittest.TestCase):
    def test_a_run_leaves_its_history_and_what_it_was(self):
        run = Run(USES + "torch._C.peak['reserved_bytes.all.peak'] = 50\n", ASHLAR_HISTORY="123", RANK="3")
        self.assertEqual(run.files(), ["history-PID.pickle", "info-PID.json"])
        snapshot = run.snapshot("history-%d.pickle")
        self.assertEqual(snapshot, {"events": ["made"], "recorded": [("all", "python", 123)]})
        info = run.info()
        self.assertEqual((info["exit_reason"], info["rank"], info["torch"]), ("exit", 3, "2.9.9"))
        self.assertEqual([d["index"] for d in info["devices"]], [0])
        self.assertEqual(info["devices"][0]["peak_reserved"], 50)

    def test_without_cuda_nothing_is_left(self):
        self.assertEqual(Run("import torch").files(), [])

    def test_a_reset_of_peaks_loses_none(self):
        code = "torch._C.peak['allocated_bytes.all.peak'] = 9\ntorch._C._cuda_resetPeakMemoryStats(0)\n"
        run = Run(USES + code + "torch._C.peak['reserved_bytes.all.peak'] = 4\n")
        self.assertEqual([(d["peak_allocated"], d["peak_reserved"]) for d in run.info()["devices"]], [(9, 4)])

    def test_the_programs_own_recording_stays_as_it_asked(self):
        early = "import torch\ntorch.cuda.memory._record_memory_history(max_entries=7)\n"
        for code in (early + USES, USES + early):
            run = Run(code)
            self.assertEqual(run.snapshot("history-%d.pickle")["recorded"][-1], ("all", "all", 7))
            self.assertTrue(run.info()["recorded_by_program"])

    def test_the_programs_own_snapshot_has_no_frames_of_ours(self):
        ours = os.path.join(PYTHON_SIDE, "ashlar_hollow", "values.py")
        frames = "[{'filename': %r, 'line': 1}, {'filename': 'train.py', 'line': 2}]" % ours
        code = "import torch\ntorch.cuda.memory.more = {'segments': [{'blocks': [{'frames': %s}]}]}\n" % frames
        run = Run(code + "print(torch.cuda.memory._snapshot()['segments'][0]['blocks'][0]['frames'])")
        self.assertEqual(run.out, "[{'filename': 'train.py', 'line': 2}]\n")

    def test_what_was_recorded_outlives_the_programs_stop(self):
        stop = "torch.cuda.memory._record_memory_history(None)\ntorch.cuda.memory.events.clear()\n"
        self.assertEqual(Run(USES + stop).snapshot("history-%d.pickle")["events"], ["made"])

    def test_sys_exit_and_exceptions_leave_a_history_and_the_code(self):
        run = Run(USES + "sys.exit(5)")
        self.assertEqual((run.code, run.files()), (5, ["history-PID.pickle", "info-PID.json"]))
        run = Run(USES + "raise ValueError('no')")
        self.assertEqual((run.code, run.info()["exit_reason"]), (1, "exception"))
        self.assertEqual(run.info()["exception"], "ValueError: no")

    def test_an_interrupt_ends_the_program_as_python_does(self):
        run = Run(USES + "raise KeyboardInterrupt")
        self.assertEqual((run.code, run.info()["exception"]), (-signal.SIGINT, "KeyboardInterrupt"))

    def test_nothing_is_imported_by_a_snapshot(self):
        run = Run("import atexit, sys\natexit.register(lambda: print('torch._inductor' in sys.modules))\n" + USES)
        self.assertEqual((run.out, run.files()), ("False\n", ["history-PID.pickle", "info-PID.json"]))

    def test_a_forked_child_without_cuda_leaves_nothing_and_one_with_it_its_own(self):
        fork = "import torch, os, sys\nif os.fork() == 0: sys.exit(0)\nos.wait()\n"
        self.assertEqual(Run(fork).files(), [])
        self.assertEqual(len(Run(USES + "if os.fork() == 0: sys.exit(0)\nos.wait()\n").files()), 2)
        child = "p = m.get_context('fork').Process(target=torch.cuda.use); p.start(); p.join()"
        run = Run("import multiprocessing as m, torch\n" + child)
        self.assertEqual(len(run.files()), 2, run.err)
        self.assertNotIn("info-PID.json", run.files())


class Failure(unittest.TestCase):
    CAUGHT = "for _ in range(%d):\n  try: torch.cuda.fail()\n  except torch.cuda.OutOfMemoryError: pass\n"

    def test_the_snapshot_is_of_before_the_unwinding(self):
        run = Run(USES + self.CAUGHT % 1)
        self.assertEqual(run.snapshot("oom-%d-1.pickle")["events"], ["made", "oom"])
        failure = run.info()["failures"][0]
        self.assertEqual((failure["requested"], failure["text"]), (77, "tried to allocate 77 bytes"))

    def test_the_first_and_the_last_are_kept(self):
        run = Run(USES + self.CAUGHT % 4)
        self.assertEqual(run.files(), ["history-PID.pickle", "info-PID.json", "oom-PID-1.pickle", "oom-PID-4.pickle"])
        self.assertEqual(run.snapshot("oom-%d-1.pickle")["events"].count("oom"), 1)
        self.assertEqual(run.snapshot("oom-%d-4.pickle")["events"].count("oom"), 4)
        self.assertEqual((len(run.info()["failures"]), run.info()["num_ooms"]), (2, 4))


class Refused(unittest.TestCase):
    """What backend:cudaMallocAsync and allocators in PyTorch's place answer: each question raises, at its moment."""

    QUESTIONS = ("_C._cuda_attach_out_of_memory_observer", "cuda.memory._record_memory_history", "cuda.memory._snapshot",
                 "cuda.memory_stats", "cuda.device_count")
    REFUSING = """
        import sys
        def refusing(name):
            def refuse(*args, **kwargs):
                raise RuntimeError("cudaMallocAsync does not yet support " + name + ". If you need it, please\\nfile")
            return refuse
        for question in QUESTIONS:
            holder = sys.modules[__name__]
            *holders, name = question.split(".")
            for part in holders: holder = getattr(holder, part)
            setattr(holder, name, refusing(name.strip("_")))
    """
    GOES_ON = "torch._C._cuda_resetPeakMemoryStats(0)\n" + Failure.CAUGHT % 2 + "print('went on')\n"

    def run_refusing(self, questions, code):
        """By the module itself: before our Python sees it."""
        refusing = self.REFUSING.replace("QUESTIONS", repr(questions))
        whole = textwrap.dedent(TORCH["torch/__init__.py"]) + textwrap.dedent(refusing)
        return Run(USES + code, {"torch/__init__.py": whole})

    def test_the_program_goes_on_and_one_line_says_what_is_not_kept(self):
        run = self.run_refusing(self.QUESTIONS, self.GOES_ON)
        self.assertEqual((run.code, run.out, run.err, run.files()), (0, "went on\n", "", ["info-PID.json"]))
        info = run.info()
        self.assertEqual(info["not_kept"], "cudaMallocAsync does not yet support record_memory_history")
        self.assertEqual((info["num_failures"], info["failures"][0]["text"]), (2, "tried to allocate 77 bytes"))

    def test_any_one_of_them_may_be_refused(self):
        for question in self.QUESTIONS:
            run = self.run_refusing((question,), self.GOES_ON)
            self.assertEqual((run.code, run.out), (0, "went on\n"), question + run.err)
            self.assertIn("info-PID.json", run.files(), question)
            self.assertEqual(run.info()["num_failures"], 2, question)

    def test_the_programs_own_error_is_as_without_us(self):
        run = self.run_refusing(self.QUESTIONS, "torch.cuda.fail()")
        self.assertEqual((run.code, run.err.splitlines()[-1]), (1, "torch.cuda.OutOfMemoryError: tried to allocate 77 bytes"))
        self.assertEqual(run.info()["exception"], "OutOfMemoryError: tried to allocate 77 bytes")
        run = self.run_refusing(self.QUESTIONS, "torch.cuda.memory._record_memory_history(max_entries=7)")
        self.assertIn("RuntimeError: cudaMallocAsync does not yet", run.err)
        self.assertFalse(run.info()["recorded_by_program"])


class Counted(unittest.TestCase):
    """A cycle may hold memory of the device: when it is collected goes by a count of objects."""

    def test_a_failure_leaves_the_collector_s_count_as_it_was(self):
        run = Run(USES + """
import gc
from ashlar_hollow import observer
observed, = torch._C.observers
gc.collect()
moved = []
for _ in range(5):
    before = gc.get_count()[0]
    observed(0, 77, 0, 0)
    moved.append(gc.get_count()[0] - before)
held = observer.collector.hold()
stay = [set() for _ in range(50)]
observer.collector.release(held)
moved.append(gc.get_count()[0] - held[1])
print(max(map(abs, moved[1:])) <= 4 or moved, gc.isenabled())
""")
        self.assertEqual((run.out.strip(), run.err), ("True True", ""))


# What the file says now of when names were taken.
READS = """
import glob, pickle
with open(glob.glob(os.environ["ASHLAR_RECORD"] + "/history-*")[0], "rb") as data:
    print(pickle.load(data).get("ashlar_names", {}).get("when"))
"""


class Signals(unittest.TestCase):
    KILL = "os.kill(os.getpid(), signal.%s)\n"

    def test_at_sigusr1_names_are_taken_where_the_program_has_no_handler(self):
        alone = Run(USES + "os.kill(os.getpid(), signal.SIGUSR1)\n" + READS)
        self.assertEqual((alone.code, alone.out.strip(), alone.err), (0, "signal %d" % signal.SIGUSR1, ""))
        handled = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n"
        beside = Run(handled + USES + "os.kill(os.getpid(), signal.SIGUSR1)\n" + READS)
        self.assertEqual((beside.code, beside.out.strip(), beside.err), (0, "None", ""))

    def test_it_is_said_that_sigusr1_is_answered_with_names(self):
        says = "print(os.path.exists(os.path.join(os.environ['ASHLAR_RECORD'], 'usr1-%d' % os.getpid())))\n"
        handled = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n"
        self.assertEqual([Run(code + says).out for code in (USES, handled + USES)], ["True\n", "False\n"])

    def test_sigusr1_writes_and_the_program_goes_on(self):
        run = Run(USES + self.KILL % "SIGUSR1" + "print(sorted(n[:4] for n in os.listdir(os.environ['ASHLAR_RECORD'])))")
        self.assertEqual((run.code, run.out), (0, "['hist', 'info', 'usr1']\n"))

    def test_sigterm_ends_the_program_as_it_would_have(self):
        run = Run(USES + self.KILL % "SIGTERM" + "print('still here')")
        self.assertEqual((run.code, run.out), (-signal.SIGTERM, ""))
        self.assertEqual(run.info()["exit_reason"], "signal %d" % signal.SIGTERM)

    def test_the_programs_own_handler_is_called_too(self):
        own = "import signal\nsignal.signal(signal.SIGTERM, lambda *a: print('own'))\n"
        run = Run(own + USES + self.KILL % "SIGTERM")
        self.assertEqual((run.code, run.out), (0, "own\n"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PYTHON_SIDE = sys.argv.pop()
    unittest.main()
