"""A CUDA tensor goes to another process and back: by the allocator's handles for shared memory.

    torch_shared.py [pages | own]    # of an expandable segment; to a process with PyTorch's own allocator
"""

import sys

import torch
import torch.multiprocessing as processes
from tell import tell


def work(is_ours, asked, answered):
    if is_ours:
        import ashlar_gpu.torch

        ashlar_gpu.torch.install(interface="native")
    for turn in range(5):
        tensor = asked.get()
        answered.put((turn, tuple(tensor.shape), tensor.storage_offset(), torch.cuda.memory_allocated()))
        del tensor
    answered.put("done")
    asked.get()


if __name__ == "__main__":
    kind = "".join(sys.argv[1:])
    is_ours = torch.cuda.memory.get_allocator_backend() == "ashlar" and kind != "own"
    if kind == "pages":
        assert torch.cuda.memory._snapshot()["allocator_settings"]["expandable_segments"]
    context = processes.get_context("spawn")
    asked, answered = context.Queue(), context.Queue()
    other = context.Process(target=work, args=(is_ours, asked, answered), daemon=True)
    other.start()
    kept = [torch.empty(30 << 20, dtype=torch.uint8, device="cuda"), torch.empty(1000, 500, device="cuda")]
    kept.append(torch.empty(50 << 20, dtype=torch.uint8, device="cuda"))  # over the end of a page
    seen = []
    for tensor in (kept[0], kept[1], kept[1][7:], kept[2][5:], kept[2]):
        asked.put(tensor)
        seen.append(answered.get(timeout=120))
    assert answered.get(timeout=120) == "done"
    asked.put(None)
    other.join(60)
    del kept, tensor
    torch.cuda.ipc_collect()
    tell("torch_shared", seen=seen, exit_code=other.exitcode, left=torch.cuda.memory_allocated())
