"""Changes of vLLM's offline engine, over a small stand-in for it: what it is given, what it needs, and what it tells.

    python3 fit_engine_test.py
"""

import os
import sys
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "hollow", "python"))

from ashlar_hollow.fit import engine, table  # noqa: E402

GIB = 1 << 30
PER_TOKEN = 1 << 20
REQUESTED, MEASURED = 20 * GIB, 15 * GIB  # of the card, and what the weights and a step leave of that


class Program(object):
    def __init__(self, names, has_ample_room):
        self.engine = engine.Engine(self, has_ample_room)
        kinds = [kind for kind in table.KINDS + table.ASKING if kind.__module__ == engine.__name__]
        if names is None:
            self.changes = [kind(self) if kind in table.ASKING else kind(self, False) for kind in kinds]
        else:
            self.changes = table.make(self, names)

    def guarded(self, call, *args):
        return call(*args)

    def tell(self, method, *args):
        for change in self.changes:
            getattr(change, method)(*args)


def vllm(refuses=False):
    """The modules of LLM and of its worker. An LLM has what it was given, and the bytes of its cache."""
    spec = types.SimpleNamespace(max_memory_usage_bytes=lambda settings: PER_TOKEN * settings.model_config.max_model_len,
                                 page_size_bytes=16 * PER_TOKEN)

    class Worker(object):
        requested_memory = REQUESTED

        def determine_available_memory(self):
            return MEASURED

        def get_kv_cache_spec(self):
            return {"layer": spec}

    class LLM(object):
        def __init__(self, model, *, max_model_len=4096, gpu_memory_utilization=0.9, **more):
            self.given = dict(more, max_model_len=max_model_len, gpu_memory_utilization=gpu_memory_utilization)
            worker = Worker()
            worker.vllm_config = types.SimpleNamespace(model_config=types.SimpleNamespace(max_model_len=max_model_len),
                                                       cache_config=types.SimpleNamespace(gpu_memory_utilization=gpu_memory_utilization))
            self.cache = worker.determine_available_memory()
            if refuses:
                raise ValueError("To serve at least one request, 4 GiB KV cache is needed")

    return types.SimpleNamespace(LLM=LLM), types.SimpleNamespace(Worker=Worker)


class FitEngineTest(unittest.TestCase):
    def made(self, names=None, room=True, refuses=False, **given):
        """(the program, the LLM)."""
        program = Program(names, room)
        entry, worker = vllm(refuses)
        program.engine.watch(entry)
        program.engine.watch_worker(worker)
        llm = None
        try:
            llm = entry.LLM("model", **given)
        except ValueError as error:
            self.assertTrue(refuses, error)
        program.tell("on_end")
        return program, llm

    def test_in_ample_room_the_cache_is_of_one_request(self):
        program, llm = self.made(max_model_len=2048)
        self.assertEqual(llm.cache, (2048 + 16) * PER_TOKEN)
        self.assertEqual(program.engine.told(), {"share": 0.9, "needed": 5 * GIB + (2048 + 16) * PER_TOKEN, "refused": ""})

    def test_on_the_card_it_takes_what_it_measured(self):
        program, llm = self.made(room=False, max_model_len=2048)
        self.assertEqual(llm.cache, MEASURED)
        self.assertEqual(program.engine.told()["needed"], 5 * GIB + (2048 + 16) * PER_TOKEN)
        self.assertEqual(self.made(max_model_len=1 << 20)[1].cache, MEASURED, "a room that is less than that")

    def test_what_it_refuses_is_told(self):
        program, _ = self.made(room=False, refuses=True)
        self.assertIn("KV cache is needed", program.engine.told()["refused"])

    def test_each_change_says_where_it_is_made(self):
        changes = {change.told()["name"]: change.told() for change in self.made()[0].changes}
        self.assertEqual({name: one["lines"] for name, one in changes.items()}, {
            "engine-share": ["LLM(..., gpu_memory_utilization=0.97)"],
            "engine-eager": ["LLM(..., enforce_eager=True)"],
            "engine-8-bit-cache": ['LLM(..., kv_cache_dtype="fp8")'],
            "engine-8-bit-weights": ['LLM(..., quantization="fp8")'],
            "context=2048": ["LLM(..., max_model_len=2048)"],
        })
        self.assertTrue(all("fit_engine_test.py:" in one["where"] for one in changes.values()), changes)
        self.assertEqual(changes["context=2048"]["alters"], "length")

    def test_what_is_there_already_is_no_change(self):
        given = {"gpu_memory_utilization": 0.98, "enforce_eager": True, "kv_cache_dtype": "fp8_e5m2", "quantization": "awq"}
        whys = {change.told()["name"]: change.told()["why_not"] for change in self.made(**given)[0].changes}
        self.assertEqual(whys, {
            "engine-share": "it takes 98 % of the card",
            "engine-eager": "enforce_eager is on",
            "engine-8-bit-cache": "kv_cache_dtype is fp8_e5m2",
            "engine-8-bit-weights": "the weights have a quantization",
            "context=2048": "",
        })

    def test_a_program_without_one_has_none(self):
        program = Program(None, True)
        program.tell("on_end")
        self.assertEqual({change.told()["why_not"] for change in program.changes}, {"no LLM of vLLM is made"})
        self.assertIsNone(program.engine.told())

    def test_what_is_on_is_made(self):
        names = ["engine-share", "engine-eager", "engine-8-bit-cache", "context=1000"]
        program, llm = self.made(names, max_model_len=8192, tensor_parallel_size=2)
        self.assertEqual(llm.given, {"max_model_len": 1000, "gpu_memory_utilization": 0.97, "enforce_eager": True,
                                     "kv_cache_dtype": "fp8", "tensor_parallel_size": 2})
        self.assertTrue(all(change.told()["applies"] for change in program.changes))
        self.assertEqual([len(change.written) for change in program.changes], [1, 1, 1, 1])


if __name__ == "__main__":
    unittest.main()
