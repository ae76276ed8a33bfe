"""What is done inside vLLM, SGLang and Triton, over small stand-ins for them.

    python3 engines_test.py
"""

import json
import textwrap
import unittest

from python_test import Run


class Engines(unittest.TestCase):
    def test_vllm_s_own_sums_are_told_once_it_has_measured(self):
        worker = """
            class Worker(object):
                def determine_available_memory(self):
                    self.peak_activation_memory, self.available_kv_cache_memory_bytes, self.requested_memory = 3, 8.5, 12
                    return 8
        """
        engine = """
            from types import SimpleNamespace as Settings

            class EngineCore(object):
                def __init__(self, tokens):
                    self.vllm_config = Settings(cache_config=Settings(kv_cache_size_tokens=tokens),
                                                model_config=Settings(max_model_len=1024),
                                                scheduler_config=Settings(max_num_seqs=256))
        """
        names = ("vllm/__init__.py", "vllm/v1/__init__.py", "vllm/v1/worker/__init__.py", "vllm/v1/engine/__init__.py")
        vllm = dict({name: "" for name in names}, **{"vllm/v1/worker/gpu_worker.py": worker, "vllm/v1/engine/core.py": engine})
        code = """
            import json, os
            from vllm.v1.engine.core import EngineCore
            from vllm.v1.worker.gpu_worker import Worker

            def told():
                path = os.environ["ASHLAR_RECORD"] + "/vllm-%d.json" % os.getpid()
                return open(path).read() if os.path.exists(path) else "{}"

            EngineCore(1)
            print(told())
            worker = Worker()
            worker.model_runner = type("Runner", (), {"model_memory_usage": 5})
            print(worker.determine_available_memory())
            print(told())
            EngineCore(None)
            print(told())
            EngineCore(4096)
            print(told())
        """
        run = Run(textwrap.dedent(code), vllm, ASHLAR_HOLLOW_RUN="run")
        sums = {"weights_bytes": 5, "activations_bytes": 3, "kv_cache_bytes": 8, "requested_bytes": 12}
        all_of_it = dict(sums, tokens=4096, longest_request=1024, most_requests=256)
        self.assertEqual([json.loads(line) for line in run.out.splitlines()], [{}, 8, sums, sums, all_of_it], run.err)

    def test_a_pickled_kernel_of_triton_has_nothing_of_ours(self):
        jit = """
            class JITFunction(object):
                def __init__(self): self.pre_run_hooks = []
                def add_pre_run_hook(self, hook): self.pre_run_hooks.append(hook)
                def run(self, *args): return [hook(*args) for hook in self.pre_run_hooks]
        """
        triton = {"triton/__init__.py": "", "triton/runtime/__init__.py": "", "triton/runtime/jit.py": jit}
        code = """
            import copy, pickle, torch
            from ashlar_hollow import compiled
            class Known(object):
                forgotten = []
                def forget(self, tensor): self.forgotten.append(tensor.name)
            class Tensor(object):
                is_cuda = True
                def __init__(self, name): self.name = name
            torch.Tensor = Tensor
            compiled._watch_triton(torch, Known())
            from triton.runtime.jit import JITFunction
            kernel = JITFunction()
            kernel.add_pre_run_hook(print)
            text = pickle.dumps(kernel)
            print(b"ashlar" in text, len(kernel.pre_run_hooks), type(copy.copy(kernel.pre_run_hooks)).__name__)
            again = pickle.loads(text)
            kernel.run(Tensor("first"))
            again.run(Tensor("second"))
            print(Known.forgotten, len(again.pre_run_hooks))
        """
        out = Run(textwrap.dedent(code), triton).out.splitlines()
        self.assertEqual([line for line in out if "object at" not in line],
                         ["False 2 list", "['first', 'second'] 2"])

    def test_sglang_s_own_sums_are_told_once_it_has_its_cache(self):
        runner = """
            class ModelRunner(object):
                is_draft_worker = False
                def alloc_memory_pool(self, config=None):
                    self.max_total_num_tokens = 9
                    self.token_to_kv_pool = type("Pool", (), {"mem_usage": 2.0})
                    return config
        """
        names = ("sglang/__init__.py", "sglang/srt/__init__.py", "sglang/srt/model_executor/__init__.py")
        sglang = dict({name: "" for name in names}, **{"sglang/srt/model_executor/model_runner.py": runner})
        code = """
            import json, os
            from sglang.srt.model_executor.model_runner import ModelRunner
            path = os.environ["ASHLAR_RECORD"] + "/sglang-%d.json" % os.getpid()
            draft, runner = ModelRunner(), ModelRunner()
            draft.is_draft_worker = True
            draft.alloc_memory_pool()
            print(os.path.exists(path))
            runner.weight_load_mem_usage, runner.pre_model_load_memory, runner.mem_fraction_static = 0.5, 16.0, 0.75
            print(runner.alloc_memory_pool(config=5))
            print(open(path).read())
        """
        run = Run(textwrap.dedent(code), sglang, ASHLAR_HOLLOW_RUN="run")
        of_draft, answer, told = run.out.split("\n", 2)
        self.assertEqual((of_draft, answer), ("False", "5"), run.err)
        self.assertEqual(json.loads(told), {"weights_bytes": 1 << 29, "kv_cache_bytes": 2 << 30, "requested_bytes": 12 << 30,
                                            "tokens": 9})

    def test_a_kernel_that_sglang_cannot_build_does_nothing(self):
        loader = """
            def load_jit(name, *args):
                if name == "rope":
                    raise RuntimeError("Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist\\nmore")
                return name, args
        """
        folders = ["sglang", "sglang/kernels", "sglang/kernels/jit", "sglang/kernels/jit/utils", "sglang/kernels/jit/utils/compile"]
        sglang = {folder + "/__init__.py": "" for folder in folders}
        sglang["sglang/kernels/jit/utils/compile/loader.py"] = loader
        code = """
            from sglang.kernels.jit.utils.compile.loader import load_jit
            print(load_jit("norm", 3))
            kernel = load_jit("rope")
            print(kernel.run_rope(1, out=2), load_jit("rope").run(), hasattr(kernel, "__array__"))
        """
        run = Run(textwrap.dedent(code), sglang, ASHLAR_HOLLOW_RUN="run")
        self.assertEqual(run.out, "('norm', (3,))\nNone None False\n", run.err)
        self.assertEqual(run.err.count("ashlar: SGLang could not build its kernel rope (Could not find nvcc and"), 1)
        self.assertNotIn("more", run.err.replace("others", ""))
        recorded = Run(textwrap.dedent(code), sglang)
        self.assertIn("RuntimeError: Could not find nvcc", recorded.err)

    def test_sglang_s_scheduler_ends_before_it_is_killed(self):
        scheduler = """
            import time
            def run_scheduler_process(pipe, is_deaf):
                if is_deaf:
                    import signal
                    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
                try:
                    pipe.send("ready")
                    while True: time.sleep(0.01)
                except Exception: pass
                finally: pipe.send("ended")
        """
        common = """
            import multiprocessing
            def kill_process_tree(parent_pid, include_parent=True):
                for child in multiprocessing.active_children(): child.kill()
        """
        folders = ("sglang", "sglang/srt", "sglang/srt/managers", "sglang/srt/utils")
        sglang = dict({folder + "/__init__.py": "" for folder in folders},
                      **{"sglang/srt/managers/scheduler.py": scheduler, "sglang/srt/utils/common.py": common})
        code = """
            import multiprocessing, os
            from sglang.srt.managers.scheduler import run_scheduler_process
            from sglang.srt.utils.common import kill_process_tree
            import ashlar_hollow.sglang_end
            ashlar_hollow.sglang_end.MOST_SECONDS = 1
            if __name__ == "__main__":
                context = multiprocessing.get_context("spawn")
                for is_deaf in (False, True):
                    ours, theirs = context.Pipe()
                    child = context.Process(target=run_scheduler_process, args=(theirs, is_deaf))
                    child.start()
                    ours.recv()
                    kill_process_tree(os.getpid(), include_parent=False)
                    child.join()
                    print(is_deaf, child.exitcode, ours.poll())
        """
        run = Run(textwrap.dedent(code), sglang, ASHLAR_HOLLOW_RUN="run")
        self.assertEqual(run.out, "False 0 True\nTrue -9 False\n", run.err)


if __name__ == "__main__":
    unittest.main()
