"""A client of PyTorch's C++ in this folder, compiled by g++ against the installed release's headers and loaded.

    library = torch_client.load("torch_calls", ["c10", "c10_cuda", "torch", "torch_cuda"])     # torch_calls.cc

CUDA's headers: those of CUDA_HOME, else of /usr/local/cuda.
"""

import ctypes
import os
import pathlib
import subprocess
import tempfile

import torch

HERE = pathlib.Path(__file__).resolve().parent


def load(name, libraries):
    root = pathlib.Path(torch.__file__).parent
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include"
    environment = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, name + ".so")
        command = ["g++", "-std=c++20", "-O2", "-w", "-shared", "-fPIC",
                   f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", f"-I{root}/include", f"-I{cuda}",
                   str(HERE / (name + ".cc")), "-o", target, f"-L{root}/lib", *(f"-l{one}" for one in libraries),
                   f"-Wl,-rpath,{root}/lib"]
        subprocess.run(command, check=True, env=environment)
        return ctypes.CDLL(target)
