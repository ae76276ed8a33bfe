"""A library of C++ in a program's text, compiled against PyTorch's headers, for what Python does not have."""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from ashlar_gpu import _torch_native  # noqa: E402  (for the folders of CUDA's headers)


def load(text):
    root = pathlib.Path(torch.__file__).parent
    includes = [f"-isystem{path}" for path in [root / "include", *_torch_native._cuda_includes(torch)]]
    plain = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory() as folder:
        source, made = pathlib.Path(folder) / "client.cc", pathlib.Path(folder) / "client.so"
        source.write_text(text, encoding="utf-8")
        subprocess.run(["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", *includes, str(source), "-o", str(made),
                        f"-L{root}/lib", "-lc10", "-lc10_cuda"], check=True, env=plain)
        return ctypes.CDLL(str(made))
