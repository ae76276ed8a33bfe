"""When who holds the memory is looked at for a new peak, and how its names are hidden, without PyTorch: a stand-in counts bytes."""

import contextlib
import gc
import io
import os
import pickle
import tempfile
import types
import unittest

from holders_test import MIB, Device, Torch, names_of

from ashlar_hollow import held_peaks, holders, imports


class Tensor(object):
    def __init__(self, bytes_):
        self.bytes = bytes_

    def numel(self):
        return self.bytes

    def element_size(self):
        return 1


class Program(object):
    """A device whose blocks come and go, and what it says to PyTorch's questions."""

    def __init__(self):
        self.device, self.asked, self.is_capturing = Device(), 0, False
        self.names = holders.Names()
        self.names.began -= 1e6  # a run that has time
        self.torch = types.SimpleNamespace(_C=Torch._C, strided=Torch.strided, __version__=Torch.__version__)
        memory = types.SimpleNamespace(memory_stats_as_nested_dict=self.stats)
        self.torch.cuda = types.SimpleNamespace(
            memory=memory, device_count=lambda: 2, is_current_stream_capturing=lambda: self.is_capturing,
            memory_snapshot=lambda include_traces=True: [] if include_traces else self.device.snapshot()["segments"])
        self.peaks = held_peaks.HeldPeaks(self.torch, self.names)

    def stats(self, device):
        self.asked += 1
        size = sum(one["size"] for one in self.device.blocks)
        return {"allocated_bytes": {"all": {"current": size}}} if device == 0 else {}

    def make(self, mib):
        tensor = self.device.tensor(mib * MIB)
        self.peaks.made([Tensor(mib * MIB)])
        return tensor

    def owners(self):
        return sorted((one["name"], one["bytes"] // MIB) for one in self.names.peak["holders"])


class Peaks(unittest.TestCase):
    def test_the_newest_peak_is_kept_where_the_end_has_freed_everything(self):
        program = Program()
        early = program.make(64)
        kept = [program.make(32) for _ in range(4)]
        for _ in range(2):
            del kept[-1], program.device.blocks[-1]
        program.peaks.look()  # less than at the peak
        self.assertEqual(program.names.peak["when"], "peak")
        self.assertEqual(program.names.peak["live_bytes"] // MIB, 191)  # the device asks for 24 bytes less a block
        del program.device.blocks[:], kept, early
        end = program.device.snapshot()
        with program.names.taking(Torch, "exit", True) as add_names:
            add_names(end)
        self.assertEqual(end[holders.KEY]["blocks"], [])
        self.assertEqual(end[holders.PEAK_KEY], program.names.peak)

    def test_a_failure_is_the_moment_and_no_peak_is_beside_it(self):
        program, snapshots = Program(), []
        kept = program.make(64)
        for when in ("out_of_memory", "exit"):
            snapshots.append(program.device.snapshot())
            with program.names.taking(Torch, when) as add_names:
                add_names(snapshots[-1])
        again = {}
        with holders.Again(program.names).taking(Torch, "exit", True) as add_names:
            add_names(again)
        self.assertIsNotNone(program.names.peak)
        self.assertFalse(any(holders.PEAK_KEY in one for one in snapshots[:1]))
        del kept

    def test_pytorch_is_asked_only_where_a_peak_may_be_new(self):
        program = Program()
        kept = [program.make(64)]
        asked = program.asked
        for _ in range(31):
            kept.append(program.make(1))
        self.assertEqual(program.asked, asked)
        kept.append(program.make(1))  # 32 MiB more
        self.assertEqual(program.asked, asked + 2)  # of two devices
        self.assertEqual(program.peaks.walked, 96 * MIB)
        kept.append(program.make(512))
        self.assertEqual(program.peaks.walked, 608 * MIB)
        kept.append(program.make(75))  # less than an eighth
        self.assertEqual(program.peaks.walked, 608 * MIB)
        del kept

    def test_all_looks_take_a_tenth_of_the_run(self):
        program = Program()
        kept = [program.make(64)]
        program.names.seconds, program.names.seconds_of_peak = 5.0, 1.0
        program.names.began = held_peaks.time.monotonic() - 59
        kept.append(program.make(640))
        self.assertEqual(program.peaks.walked, 64 * MIB)  # 6 s would be more than a tenth
        program.names.began -= 2
        program.peaks.not_before = 0
        program.peaks.look()
        self.assertEqual(program.peaks.walked, 704 * MIB)
        program.names.seconds, program.names.seconds_of_peak = 5.0, 1.0
        kept.append(program.make(100))
        self.assertEqual(program.peaks.walked, 704 * MIB)  # more than a twentieth: for a fifth more alone
        program.peaks.not_before = 0
        kept.append(program.make(100))
        self.assertEqual(program.peaks.walked, 904 * MIB)
        del kept

    def test_a_look_is_no_more_than_variables_and_frames(self):
        program, every = Program(), gc.get_objects
        local = program.device.tensor(64 * MIB)
        gc.get_objects = None
        try:
            program.peaks.look()
        finally:
            gc.get_objects = every
        self.assertEqual(program.owners(), [("local", 63)])
        del local

    def test_nothing_is_looked_at_while_a_graph_is_captured(self):
        program = Program()
        program.is_capturing = True
        kept = program.make(64)
        self.assertIsNone(program.names.peak)
        del kept

    def test_what_fails_is_one_line_and_the_end_of_looking(self):
        program, err = Program(), io.StringIO()
        program.torch.cuda.memory = None
        with contextlib.redirect_stderr(err):
            kept = [program.make(64), program.make(64)]
            program.peaks.install(at_operations=True)
        self.assertEqual(err.getvalue(), "ashlar: not kept: who holds the memory, by name: AttributeError: 'NoneType' object "
                                         "has no attribute 'memory_stats_as_nested_dict'\n")
        del kept

    def test_a_forked_child_looks_once_it_uses_the_device_itself(self):
        program = Program()
        kept = program.make(64)
        program.peaks.pid += 1  # as in a child, which has its parent's
        kept = [kept, program.make(64)]
        self.assertEqual(program.peaks.walked, 64 * MIB)
        program.peaks.begin(program.names)
        program.peaks.look()
        self.assertEqual(program.peaks.walked, 128 * MIB)
        del kept

    def test_an_outermost_modules_call_without_gradients_is_asked_about_until_there_is_a_compiler(self):
        program, calls = Program(), []

        class Module(object):
            def __call__(self, inner=None):
                calls.append(inner)
                return inner and inner()

        program.torch.is_grad_enabled = lambda: False
        plain, program.peaks.look = Module.__call__, lambda: calls.append("look")
        program.peaks._watch_modules(Module)
        Module()(Module())
        self.assertEqual(calls[1:], [None, "look"])
        program.torch.is_grad_enabled = lambda: True
        Module()()
        self.assertEqual(calls[3:], [None])
        (put_back,) = imports._finder.calls.pop("torch._dynamo")
        put_back(None)
        self.assertIs(vars(Module)["__call__"], plain)

    def test_an_optimizer_s_compiler_compiles_nothing(self):
        program = Program()
        part = held_peaks.COMPILES.split(".")
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, *part[:-1]))
            open(os.path.join(folder, *part) + ".py", "w").close()
            program.torch.__file__ = os.path.join(folder, "torch", "__init__.py")
            self.assertEqual(program.peaks._imported_to_compile(), held_peaks.COMPILES)
            os.remove(os.path.join(folder, *part) + ".py")
            self.assertEqual(program.peaks._imported_to_compile(), "torch._dynamo")

    def test_off_is_no_look_at_peaks_either(self):
        program = Program()
        program.names.limits = holders.Limits(0)
        kept = program.make(64)
        self.assertIsNone(program.names.peak)
        del kept

    def test_looks_as_a_user_writes_them(self):
        cases = {"3s": (3.0, False), "off": (0.0, False), "peak": (None, True), "peak,3s": (3.0, True), "2.5,peak": (2.5, True),
                 "": (None, False), "soon": (None, False), "-1s": (None, False), "nan": (None, False), "1e9": (None, False)}
        for text, (seconds, at_peaks) in cases.items():
            limits, found = holders.looks_of(text)
            self.assertEqual((limits and limits.seconds, found), (seconds, at_peaks), text)


class SecretKey(object):
    """Of the program, which a redacted file must not name."""

    def __init__(self, tensor):
        self.hidden_field = {"customer": [tensor]}
        self.itself = self


WORDS = ("secret_losses", "SecretKey", "hidden_field", "customer", "inner_secret", "plan_b", "held_peaks_test",
         "test_no_name_of_the_program_is_in_what_is_written", "secret_mark", "SecretOptimizer", "note of mine", "private_package")


def snapshot_with_stacks(device):
    frames = [{"name": "forward", "filename": "/x/site-packages/torch/nn/modules/linear.py", "line": 7},
              {"name": "SecretKey.plan_b", "filename": "/home/me/held_peaks_test.py", "line": 3},
              {"name": "plan_b", "filename": "/x/site-packages/private_package/plan_b.py", "line": 4},
              {"name": "<module>", "filename": os.__file__, "line": 5}]
    for block in device.blocks:
        block["frames"] = list(frames)
    snapshot = device.snapshot()
    snapshot["device_traces"] = [[{"action": "alloc", "addr": 1, "size": 2, "stream": 0, "frames": list(frames),
                                   "compile_context": "N/A", "user_metadata": "note of mine"}]]
    snapshot["external_annotations"] = [{"stage": "START", "name": "secret_mark"},
                                        {"stage": "START", "name": "Optimizer.step#SecretOptimizer.step"}]
    return snapshot


class Redacted(unittest.TestCase):
    def taken(self, device, redaction):
        names = holders.Names(redaction=redaction)
        with names.taking(Torch, "call") as add_names:
            snapshot = snapshot_with_stacks(device)
            add_names(snapshot)
        if redaction is not None:
            redaction.stacks_of(snapshot)
        return snapshot

    def test_no_name_of_the_program_is_in_what_is_written(self):
        device = Device()
        secret_losses = [device.tensor()]
        kept = SecretKey(device.tensor())
        device.tensor()  # of no variable
        cycle = SecretKey(device.tensor())
        del cycle

        def inner_secret(plan_b=device.tensor()):
            return secret_losses

        plain = pickle.dumps(self.taken(device, None))
        self.assertEqual([word for word in WORDS if word.encode() not in plain], [])  # each would be there
        hidden = self.taken(device, holders.Redaction())
        self.assertEqual([word for word in WORDS if word.encode() in pickle.dumps(hidden)], [])
        del kept, inner_secret

    def test_kinds_sizes_counts_and_what_pytorch_has_stay(self):
        device = Device()
        secret_losses, more = [device.tensor(), device.tensor()], device.tensor()
        hidden, plain = (self.taken(device, one) for one in (holders.Redaction(), None))
        for key in ("kind", "bytes", "blocks", "line", "container"):
            self.assertEqual([one.get(key) for one in hidden[holders.KEY]["holders"]],
                             [one.get(key) for one in plain[holders.KEY]["holders"]], key)
        (event,) = hidden["device_traces"][0]
        self.assertRegex(" ".join("%s:%d" % (one["name"], one["line"]) for one in event["frames"]),
                         r"^forward:7 f\d+\.(f\d+):3 \1:4 <module>:5$")
        files = [one["filename"] for one in event["frames"]]
        self.assertEqual(files[0], "/site-packages/torch/nn/modules/linear.py")
        self.assertRegex(files[1], r"^file\d+\.py$")
        self.assertRegex(files[3], r"^/lib/python3\.\d+/os\.py$")
        self.assertEqual((event["action"], event["compile_context"], event["user_metadata"]), ("alloc", "N/A", "text1"))
        del secret_losses, more

    def test_equal_names_stay_equal_and_others_do_not(self):
        redaction = holders.Redaction()
        self.assertEqual(redaction.root("local", "a"), redaction.root("closure", "a"))
        self.assertNotEqual(redaction.root("local", "a"), redaction.root("local", "b"))
        self.assertEqual(redaction.path(".layers.*.weight[layers.0]"), ".m1.*.m2[m1.0]")
        self.assertEqual(redaction.root("cycle", "reference cycle of Secret, dict"), "reference cycle of t1, dict")
        self.assertEqual(redaction.root("global", roots_word()), roots_word())
        self.assertEqual(redaction.file("/home/me/train.py"), redaction.file("/home/me/train.py"))
        self.assertEqual(redaction.file("<frozen runpy>"), "<frozen runpy>")
        self.assertRegex(redaction.function("secret", "<string>"), r"^f\d+$")  # of python -c
        self.assertEqual(redaction.function("relu", "/x/site-packages/torch/nn/functional.py"), "relu")


def roots_word():
    return holders.roots.HANDLED


if __name__ == "__main__":
    unittest.main()
