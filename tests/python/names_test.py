"""ashlar_gpu.names without PyTorch: a stand-in for torch with two blocks. tests/hollow/holders_test.py has the walk itself."""

import contextlib
import os
import pickle
import sys
import tempfile
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ashlar_gpu  # noqa: E402


class TensorBase:
    def __init__(self, address):
        self.address = address


def stand_in():
    memory = types.SimpleNamespace(_snapshot=lambda: snapshot([(0x1000, 512), (0x2000, 1024)]))
    names = types.SimpleNamespace(
        TensorBase=TensorBase, StorageBase=type("StorageBase", (), {}), _FunctionBase=type("_FunctionBase", (), {}),
        DisableTorchFunction=contextlib.nullcontext, _DisableTorchDispatch=contextlib.nullcontext,
        _data_address=lambda tensor: tensor.address)
    torch = types.ModuleType("torch")
    torch._C, torch.strided, torch.__version__ = names, "strided", "2.9.9"
    torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, memory=memory)
    return torch


def snapshot(blocks):
    listed = [{"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": []}
              for address, size in blocks]
    return {"segments": [{"address": 0x1000, "blocks": listed}], "device_traces": []}


class Names(unittest.TestCase):
    def setUp(self):
        sys.modules["torch"] = stand_in()

    def tearDown(self):
        del sys.modules["torch"]

    def test_who_holds_it_now(self):
        losses = [TensorBase(0x2000)]
        said = ashlar_gpu.names()
        self.assertEqual([(one.kind, one.name, one.bytes) for one in said.holders],
                         [("element", "losses[]", 1024), ("not_found", "not found", 512)])
        self.assertEqual((said.live_bytes, said.named_bytes, said.bound), (1536, 1024, None))
        self.assertRegex(said.holders[0].place, r"^names_test\.py:\d+ test_who_holds_it_now\(\)$")
        self.assertEqual(said.holders[0].container, "list")
        self.assertIn("element losses[] in names_test.py:", str(said))
        self.assertIn("losses[]", said._repr_html_())
        del losses

    def in_file(self, data):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "snapshot.pickle")
        with open(path, "wb") as out:
            out.write(data)
        return path

    def test_names_are_added_to_a_file_for_what_is_live_in_it(self):
        path = self.in_file(pickle.dumps(snapshot([(0x2000, 1024), (0x9000, 64)])))
        kept, gone = TensorBase(0x2000), TensorBase(0x1000)
        said = ashlar_gpu.names(path)
        self.assertEqual(said.dropped, 1)
        with open(path, "rb") as data:
            record = pickle.load(data)["ashlar_names"]
        self.assertEqual([address for address, _, _ in record["blocks"]], [0x2000, 0x9000])
        self.assertEqual(record["live_bytes"], 1088)
        self.assertEqual(sum(one["bytes"] for one in record["holders"]), 1088)
        self.assertEqual({one.name: one.bytes for one in said.holders}, {"kept": 1024, "not found": 64})
        del kept, gone

    def refused(self, *arguments):
        with self.assertRaises(ashlar_gpu.Error) as raised:
            ashlar_gpu.names(*arguments)
        return str(raised.exception)

    def test_what_cannot_be_done_is_one_line(self):
        class Made:
            def __reduce__(self):
                return os.getpid, ()

        self.assertIn("no snapshot that names can be added to: it holds posix.getpid",
                      self.refused(self.in_file(pickle.dumps({"segments": Made()}))))
        self.assertIn("give a file of torch.cuda.memory._dump_snapshot", self.refused(self.in_file(pickle.dumps([1]))))
        self.assertIn("no snapshot that names", self.refused("/no/such/file"))
        sys.modules["torch"].cuda.is_initialized = lambda: False
        self.assertEqual(self.refused(), "names: this process has not used PyTorch's CUDA: there is nothing to name")


if __name__ == "__main__":
    unittest.main()
