"""on_oom and record without a GPU and without PyTorch: a small stand-in for torch fails as torch does.

The snapshot of the stand-in is a recorded one, so that what is explained is real. conformance/python_api.py has the same
with PyTorch over the hollow device.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HAS_NOTES = sys.version_info >= (3, 11)

# What ashlar_gpu uses of torch, as PyTorch 2.1 and later have it.
TORCH = {
    "torch/__init__.py": """
        __version__, strided = "2.9.9", "strided"
        from torch import _C, cuda
    """,
    "torch/_C.py": """
        import contextlib
        class TensorBase: pass
        class StorageBase: pass
        class _FunctionBase: pass
        DisableTorchFunction = _DisableTorchDispatch = contextlib.nullcontext
        observers = []
        is_pluggable = False
        def _cuda_attach_out_of_memory_observer(observer):
            if is_pluggable:
                raise RuntimeError("CUDAPluggableAllocator does not yet support attachOutOfMemoryObserver")
            observers.append(observer)
        def _cuda_isHistoryEnabled(): return bool(cuda_recorded)
        cuda_recorded = []
    """,
    "torch/cuda/__init__.py": """
        from torch import _C
        from torch.cuda import memory
        queued, used = [], []
        class OutOfMemoryError(RuntimeError): pass
        def is_initialized(): return bool(used)
        def _lazy_call(call):
            call() if used else queued.append(call)
        def use():
            used.append(True)
            while queued: queued.pop(0)()
        TEXT = ("CUDA out of memory. Tried to allocate 638.03 MiB. GPU 0 has a total capacity of 12.00 GiB of which "
                "556.00 MiB is free. Including non-PyTorch memory, this process has 11.45 GiB memory in use. Of the "
                "allocated memory 9.78 GiB is allocated by PyTorch, and 1.14 GiB is reserved by PyTorch but unallocated.")
        def fail():
            for observer in _C.observers: observer(0, 669000000, 12 << 30, 583008256)
            raise OutOfMemoryError(TEXT)
    """,
    "torch/cuda/memory.py": """
        import os, pickle
        from torch import _C
        snapshots = []
        def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=1):
            _C.cuda_recorded[:] = [(enabled, stacks, max_entries)] if enabled else []
        def _snapshot():
            snapshots.append(1)
            with open(os.environ["RECORDED_SNAPSHOT"], "rb") as data: return pickle.load(data)
    """,
}
SNAPSHOT = os.path.join(ROOT, "docs", "examples", "training_oom.pickle")
SAYS = "OUT OF MEMORY  device 0, event 6,768 of the recording: 638.03 MiB requested"
PASTES = "FIX            export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
THREE_LINES = "import ashlar_gpu\nashlar_gpu.on_oom()\nimport torch\ntorch.cuda.use()\n"


def run(code, **environment):
    """Exit code, standard output and error of a program of its own process, and its folder's files."""
    with tempfile.TemporaryDirectory() as place:
        for name, text in [*TORCH.items(), ("program.py", code)]:
            path = os.path.join(place, "lib", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(textwrap.dedent(text))
        paths = os.pathsep.join([os.path.join(ROOT, "python"), os.path.join(place, "lib")])
        whole = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "RECORDED_SNAPSHOT": SNAPSHOT,
                 "TMPDIR": place, **environment}
        done = subprocess.run([sys.executable, os.path.join(place, "lib", "program.py")], env=whole, cwd=place,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode(), sorted(os.listdir(place))


class OnOom(unittest.TestCase):
    def ends_with_verdict(self, text):
        error, says, paste = (text.rindex(part) for part in ("CUDA out of memory", SAYS, PASTES))
        self.assertLess(error, says)
        self.assertLess(says, paste)
        self.assertEqual(text.count(SAYS), 1, text)
        self.says_soon_what_to_do(text)

    def says_soon_what_to_do(self, text):
        """At most three lines of the answer stand before it, wherever the answer begins."""
        lines = text.splitlines()
        begin = max(at for at, line in enumerate(lines) if "OUT OF MEMORY" in line)
        head = [line for line in lines[begin:begin + 4] if line.startswith(("FIX  ", "TRY FIRST  "))]
        self.assertEqual(len(head), 1, "\n".join(lines[begin:begin + 8]))

    def test_the_traceback_ends_with_the_verdict(self):
        code, _, err, left = run(THREE_LINES + "torch.cuda.fail()\n")
        self.assertEqual(code, 1)
        self.ends_with_verdict(err)
        self.assertEqual(left, ["lib"])

    def test_torch_may_be_there_first(self):
        _, _, err, _ = run("import torch, ashlar_gpu\nashlar_gpu.on_oom()\ntorch.cuda.use()\ntorch.cuda.fail()\n")
        self.ends_with_verdict(err)

    def test_another_error_is_left_alone(self):
        _, _, err, _ = run(THREE_LINES + "raise ValueError('mine')\n")
        self.assertTrue(err.rstrip().endswith("ValueError: mine"), err)

    def test_an_error_that_came_of_it_ends_with_it_too(self):
        _, _, err, _ = run(THREE_LINES + "try: torch.cuda.fail()\nexcept RuntimeError as e: raise ValueError('mine') from e\n")
        self.ends_with_verdict(err)
        self.assertLess(err.index("ValueError: mine"), err.index(SAYS))

    def test_in_a_thread(self):
        _, _, err, _ = run(THREE_LINES + "import threading\nt = threading.Thread(target=torch.cuda.fail)\n"
                           "t.start(); t.join()\n")
        self.ends_with_verdict(err)

    def test_caught_and_never_shown_is_said_at_the_end(self):
        code, _, err, _ = run(THREE_LINES + "for _ in range(3):\n    try: torch.cuda.fail()\n    except RuntimeError: pass\n")
        self.assertEqual(code, 0)
        self.assertIn("ashlar: the program caught 3 out-of-memory errors, the last one:", err)
        self.assertEqual((err.count(SAYS), err.count(PASTES)), (1, 1))
        self.says_soon_what_to_do(err)
        self.assertNotIn("WHO HOLDS IT", err)

    @unittest.skipUnless(HAS_NOTES, "notes of exceptions are of Python 3.11 and later")
    def test_logged_with_its_traceback(self):
        _, _, err, _ = run(THREE_LINES + "import logging\ntry: torch.cuda.fail()\nexcept RuntimeError: "
                           "logging.exception('step failed')\n")
        self.ends_with_verdict(err)

    @unittest.skipUnless(HAS_NOTES, "notes of exceptions are of Python 3.11 and later")
    def test_in_a_forked_process_of_multiprocessing(self):
        _, _, err, _ = run(THREE_LINES + "import multiprocessing\np = multiprocessing.get_context('fork').Process("
                           "target=torch.cuda.fail)\np.start(); p.join()\n")
        self.ends_with_verdict(err)

    def test_ranks_are_brief(self):
        _, _, err, _ = run(THREE_LINES + "torch.cuda.fail()\n", WORLD_SIZE="4", RANK="2")
        self.ends_with_verdict(err)
        self.assertNotIn("WHO HOLDS IT", err)

    def test_the_folder_keeps_the_snapshots(self):
        code = THREE_LINES.replace("on_oom()", "on_oom(keep='kept')") + "torch.cuda.fail()\n"
        _, _, err, left = run(code + "\n")
        self.ends_with_verdict(err)
        self.assertEqual(left, ["kept", "lib"])

    def test_another_allocator_goes_by_the_message(self):
        _, _, err, _ = run(THREE_LINES.replace("torch.cuda.use()", "torch._C.is_pluggable = True\ntorch.cuda.use()")
                           + "torch.cuda.fail()\n")
        self.assertNotIn("event 6,768", err)
        self.says_soon_what_to_do(err)

    def test_another_framework_goes_by_the_message(self):
        code = ("import ashlar_gpu\nashlar_gpu.on_oom()\nclass XlaRuntimeError(RuntimeError): pass\nraise XlaRuntimeError("
                "'RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.')\n")
        _, _, err, _ = run(code)
        self.assertIn("16.00 GiB", err)
        self.says_soon_what_to_do(err)

    def test_the_programs_own_hook_still_runs(self):
        code = ("import sys\nsys.excepthook = lambda *a: sys.stderr.write('mine: %s' % a[0].__name__)\n" + THREE_LINES
                + "torch.cuda.fail()\n")
        _, _, err, _ = run(code)
        self.assertIn("mine: OutOfMemoryError", err)

    def test_an_error_is_not_kept_alive(self):
        code = THREE_LINES + ("import weakref\nclass Big: pass\ndef f():\n    big = Big(); seen.append(weakref.ref(big))\n"
                              "    torch.cuda.fail()\nseen = []\nimport gc; gc.disable()\ntry: f()\n"
                              "except RuntimeError: pass\nprint(seen[0]())\n")
        _, out, _, _ = run(code)
        self.assertEqual(out, "None\n")

    def test_a_history_of_the_program_is_kept_as_it_is(self):
        code = ("import torch, ashlar_gpu\ntorch.cuda.memory._record_memory_history('all', max_entries=7)\n"
                "ashlar_gpu.on_oom()\ntorch.cuda.use()\nprint(torch._C.cuda_recorded)\n")
        self.assertEqual(run(code)[1], "[('all', 'all', 7)]\n")


class Record(unittest.TestCase):
    def test_a_failure_is_explained(self):
        code = ("import torch, ashlar_gpu\ntorch.cuda.use()\ntry:\n    with ashlar_gpu.record('out.pickle') as run:\n"
                "        torch.cuda.fail()\nexcept RuntimeError as error:\n"
                "    print(run.failed, run.explanation.verdict, run.snapshot.endswith('out.pickle'))\n"
                "    import traceback; traceback.print_exc()\nprint(torch._C.cuda_recorded)\n")
        _, out, err, left = run(code)
        self.assertEqual(out, "True fragmentation True\n[]\n", err)
        self.assertEqual(left, ["lib", "out.pickle"])
        if HAS_NOTES:
            self.assertIn(SAYS, err)

    def test_a_block_that_ends_well_is_explained_when_asked(self):
        code = ("import torch, ashlar_gpu\nwith ashlar_gpu.record() as run:\n    torch.cuda.use()\n"
                "print(run.failed, run.explanation.headline)\n")
        _, out, err, left = run(code)
        self.assertIn("False OUT OF MEMORY  device 0", out, err)  # of the snapshot that the stand-in gives
        self.assertEqual(left, ["lib"])

    FAILS = ("import torch, ashlar_gpu, os\ntorch.cuda.use()\nrun = ashlar_gpu.record({path})\nwith run:\n    {first}\n"
             "    torch.cuda.fail()\n")

    def test_a_folder_that_is_not_there_is_said_before_the_block(self):
        for path, word in (("'none/out.pickle'", "there is no folder"), ("'lib'", "cannot be written")):
            code, out, err, _ = run(self.FAILS.format(path=path, first="print('in the block')"))
            self.assertEqual((code, out), (1, ""))
            self.assertIn("ashlar_gpu.Error: record: ", err.splitlines()[-1])
            self.assertIn(word, err.splitlines()[-1])

    def test_a_folder_that_went_leaves_the_error_and_the_snapshot(self):
        code, out, err, left = run("import os\nos.mkdir('made')\n" + self.FAILS.format(
            path="'made/out.pickle'", first="os.rmdir('made')") + "\n")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("torch.cuda.OutOfMemoryError: CUDA out of memory", err)
        self.assertNotIn("FileNotFoundError", err)
        line, = [line for line in err.splitlines() if line.startswith("ashlar: record: the snapshot is ")]
        folder = os.path.basename(os.path.dirname(line.split(" is ")[1].split(",")[0]))
        self.assertIn(folder, left)
        self.assertIn(SAYS, err)

    def test_a_program_that_is_not_there_leaves_the_error_and_the_snapshot(self):
        code, out, err, left = run("import atexit, torch\natexit.register(lambda: print(torch._C.cuda_recorded))\n"
                                 + self.FAILS.format(path="'out.pickle'", first="pass"),
                                 ASHLAR_PREFIX="/none", PATH="/none")
        self.assertEqual((code, out, left), (1, "[]\n", ["lib", "out.pickle"]))
        self.assertIn("torch.cuda.OutOfMemoryError: CUDA out of memory", err)
        self.assertNotIn("ashlar_gpu.Error", err)
        self.assertEqual(err.count("ashlar: record: not explained: the program ashlar was not found"), 1)

    def test_nothing_recorded_is_a_line(self):
        _, _, err, _ = run("import torch, ashlar_gpu\nwith ashlar_gpu.record() as run: pass\nrun.explanation\n")
        self.assertTrue(err.splitlines()[-1].startswith("ashlar_gpu.Error: nothing was recorded"), err)


if __name__ == "__main__":
    unittest.main()
