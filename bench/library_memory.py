#!/usr/bin/env python3
"""What NVIDIA's libraries take for themselves on this GPU: the context, handles, workspaces. JSON on stdout.

    library_memory.py > h200_libraries.json

Each question is asked in a process of its own, so that none pays for another's. `driver` figures are by how
much NVML's used bytes rise, so that nothing else may use the GPU; those of operations are the requests of PyTorch's allocator in
their order, the result's among them.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def nvml_used():
    import ctypes

    nvml = ctypes.CDLL("libnvidia-ml.so.1")

    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    nvml.nvmlInit_v2()
    device = ctypes.c_void_p()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
    memory = Memory()
    nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
    return memory.used


def context():
    """bytes that a context takes, by NVML: after init, after the first kernel, of cublas, cudnn."""
    out = {}
    before = nvml_used()
    import torch

    torch.cuda.init()
    torch.cuda.synchronize()
    base = nvml_used()
    out["init"] = base - before

    def step(name, call):
        nonlocal base
        reserved = torch.cuda.memory_reserved()
        keep.append(call())
        torch.cuda.synchronize()
        now = nvml_used()
        out[name] = {"driver": now - base, "of_pytorch": torch.cuda.memory_reserved() - reserved}
        base = now

    keep = []
    step("empty", lambda: torch.empty(1 << 20, device="cuda"))
    step("fill kernel", lambda: torch.zeros(1 << 20, device="cuda"))
    step("add kernel", lambda: keep[1] + keep[1])
    a = torch.randn(1024, 1024, device="cuda")
    step("randn", lambda: torch.randn(1024, 1024, device="cuda"))
    step("blas handle", lambda: torch.cuda.current_blas_handle())
    step("matmul fp32", lambda: a @ a)
    h = a.half()
    b = a.bfloat16()
    step("matmul fp16", lambda: h @ h)
    step("matmul bf16", lambda: b @ b)
    step("linear with bias, bf16", lambda: torch.nn.functional.linear(b, b, b[0]))
    x = torch.randn(8, 64, 32, 32, device="cuda")
    w = torch.randn(64, 64, 3, 3, device="cuda")
    step("conv fp32", lambda: torch.nn.functional.conv2d(x, w, padding=1))
    step("conv bf16", lambda: torch.nn.functional.conv2d(x.bfloat16(), w.bfloat16(), padding=1))
    q = torch.randn(2, 8, 512, 64, device="cuda", dtype=torch.bfloat16)
    step("sdpa bf16", lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q))
    step("sort", lambda: torch.sort(a, dim=1)[0])
    step("svd", lambda: torch.linalg.svd(a)[0])
    step("fft", lambda: torch.fft.fft(a))
    stream = torch.cuda.Stream()

    def on_stream():
        with torch.cuda.stream(stream):
            return a @ a

    step("matmul on a second stream", on_stream)
    return out


def nccl():
    import torch, torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29777", RANK="0", WORLD_SIZE="1")
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    out = {}
    base = nvml_used()
    dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
    torch.cuda.synchronize()
    now = nvml_used()
    out["init_process_group"] = now - base
    base = now
    t = torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    base = nvml_used()
    dist.all_reduce(t)
    torch.cuda.synchronize()
    now = nvml_used()
    out["all_reduce of one rank"] = now - base
    base = now
    group = dist.new_group([0])
    dist.all_reduce(t, group=group)
    torch.cuda.synchronize()
    out["second communicator"] = nvml_used() - base
    out["version"] = list(torch.cuda.nccl.version())
    return out


CONVS = [  # n, c, h, w, k, r, stride, groups
    (8, 3, 224, 224, 64, 7, 2, 1),
    (8, 64, 56, 56, 64, 1, 1, 1),
    (8, 64, 56, 56, 64, 3, 1, 1),
    (8, 64, 56, 56, 256, 1, 1, 1),
    (8, 256, 56, 56, 128, 1, 1, 1),
    (8, 128, 56, 56, 128, 3, 2, 1),
    (8, 256, 56, 56, 512, 1, 2, 1),
    (8, 512, 28, 28, 128, 1, 1, 1),
    (8, 128, 28, 28, 128, 3, 1, 1),
    (8, 256, 28, 28, 256, 3, 2, 1),
    (8, 256, 14, 14, 256, 3, 1, 1),
    (8, 1024, 14, 14, 256, 1, 1, 1),
    (8, 512, 14, 14, 512, 3, 2, 1),
    (8, 512, 7, 7, 512, 3, 1, 1),
    (8, 2048, 7, 7, 512, 1, 1, 1),
    (32, 64, 56, 56, 64, 3, 1, 1),
    (32, 256, 14, 14, 256, 3, 1, 1),
    (1, 320, 64, 64, 320, 3, 1, 1),
    (2, 640, 32, 32, 640, 3, 1, 1),
    (2, 1280, 16, 16, 1280, 3, 1, 1),
    (8, 96, 56, 56, 96, 7, 1, 96),
    (8, 32, 112, 112, 32, 3, 1, 32),
    (16, 1, 28, 28, 32, 3, 1, 1),
    (4, 64, 128, 128, 128, 4, 2, 1),
    (4, 16, 256, 256, 32, 5, 1, 1),
    (2, 128, 33, 47, 96, 3, 1, 1),
]


def requests(torch, call):
    """(results' bytes, [bytes asked for, in order]) of one call, by PyTorch's own history."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history("all", context=None, stacks="python", max_entries=10000)
    result = call()
    torch.cuda.synchronize()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(None)
    return result, [e["size"] for e in events if e["action"] == "alloc"]


def convolutions(benchmark, dtype_name, channels_last):
    import torch

    torch.backends.cudnn.benchmark = benchmark
    dtype = getattr(torch, dtype_name)
    rows = []
    for n, c, h, w, k, r, stride, groups in CONVS:
        form = torch.channels_last if channels_last else torch.contiguous_format
        x = torch.randn(n, c, h, w, device="cuda", dtype=dtype).to(memory_format=form).requires_grad_()
        weight = torch.randn(k, c // groups, r, r, device="cuda", dtype=dtype).to(memory_format=form).requires_grad_()
        conv = lambda: torch.nn.functional.conv2d(x, weight, stride=stride, padding=r // 2, groups=groups)
        y, first = requests(torch, conv)
        _, again = requests(torch, conv)
        g = torch.ones_like(y)
        pick = lambda mask: torch.ops.aten.convolution_backward(
            g, x, weight, None, [stride] * 2, [r // 2] * 2, [1, 1], False, [0, 0], groups, mask
        )
        _, data = requests(torch, lambda: pick([True, False, False]))
        _, filt = requests(torch, lambda: pick([False, True, False]))
        rows.append(
            {
                "conv": [n, c, h, w, k, r, stride, groups],
                "output": y.numel() * y.element_size(),
                "forward": first,
                "forward_again": again,
                "data": data,
                "weight": filt,
            }
        )
    return rows


def rnn():
    import torch

    out = {}
    for bf in (False, True):
        m = torch.nn.LSTM(512, 512, 2, batch_first=True).cuda()
        x = torch.randn(16, 128, 512, device="cuda")
        if bf:
            m = m.bfloat16()
            x = x.bfloat16()
        y, first = requests(torch, lambda: m(x))
        _, back = requests(torch, lambda: y[0].sum().backward())
        out["bf16" if bf else "fp32"] = {"forward": first, "backward": back}
    return out


def sdpa():
    import torch
    import torch.nn.functional as F

    rows = []
    for dtype in ("float32", "float16", "bfloat16"):
        for shape in ((2, 16, 1024, 64), (2, 16, 1000, 80), (1, 32, 2048, 128), (1, 8, 777, 256), (2, 4, 512, 40)):
            for causal in (False, True):
                for mask in (False, True):
                    if mask and causal:
                        continue
                    q, k, v = (
                        torch.randn(*shape, device="cuda", dtype=getattr(torch, dtype), requires_grad=True)
                        for _ in range(3)
                    )
                    m = torch.zeros(shape[2], shape[2], device="cuda", dtype=getattr(torch, dtype)) if mask else None
                    try:
                        y, first = requests(
                            torch, lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=m, is_causal=causal)
                        )
                        name = y.grad_fn.name()
                        g = torch.ones_like(y)
                        _, back = requests(torch, lambda: torch.autograd.grad(y, (q, k, v), g))
                    except RuntimeError as error:
                        name, first, back = "error: " + str(error)[:100], [], []
                    rows.append(
                        {
                            "dtype": dtype,
                            "shape": shape,
                            "causal": causal,
                            "mask": mask,
                            "kernel": name,
                            "forward": first,
                            "backward": back,
                        }
                    )
    return rows


def stamp():
    import torch

    p = torch.cuda.get_device_properties(0)
    return {
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "card": p.name,
        "total": p.total_memory,
        "cuda": torch.version.cuda,
        "capability": torch.cuda.get_device_capability(),
        "arch_list": torch.cuda.get_arch_list(),
    }


QUESTIONS = {"stamp": stamp, "context": context, "nccl": nccl, "rnn": rnn, "sdpa": sdpa}
for bench in (False, True):
    for dtype in ("float32", "bfloat16", "float16"):
        for last in (False, True):
            if bench and dtype == "float16":
                continue
            QUESTIONS[
                "conv %s %s %s"
                % (dtype, "channels_last" if last else "contiguous", "benchmark" if bench else "default")
            ] = lambda b=bench, d=dtype, l=last: convolutions(b, d, l)

if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(QUESTIONS[sys.argv[1]]()))
        sys.exit()
    out = {}

    def ask(name, **env):
        done = subprocess.run(
            [sys.executable, __file__, name], capture_output=True, text=True, env={**os.environ, **env}, timeout=120
        )
        try:
            return json.loads(done.stdout.splitlines()[-1])
        except Exception:
            return {"error": done.stderr[-800:]}

    out["context lazy"] = ask("context")
    out["context eager"] = ask("context", CUDA_MODULE_LOADING="EAGER")
    out["nccl"] = ask("nccl")
    names = [n for n in QUESTIONS if n not in ("context", "nccl")]
    with ThreadPoolExecutor(6) as pool:
        for name, answer in zip(names, pool.map(ask, names)):
            out[name] = answer
    json.dump(out, sys.stdout)
