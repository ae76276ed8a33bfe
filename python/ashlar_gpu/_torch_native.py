"""PyTorch's own class for an allocator of CUDA memory, over Ashlar: a small library that is compiled against the headers of
the PyTorch that runs.

    native = Native.load(torch)              # prebuilt, or built once and kept in the user's cache folder; else Unavailable
    native.install("max_split_size_mb:128")  # before CUDA's first use

The class changes between releases, and a library for another one would corrupt memory: it is used only where the version,
the commit, the C++ library's kind of strings and CUDA's version are those of the headers that it was compiled with. The wheel
has one for each release that it was tested with, named after these; for others it is compiled here, and sources and compiler
flags are part of the file's name too. Threads: one; several processes may build at once, and one of them does.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import warnings

from . import _library as c
from . import _native, _torch_settings

LIBRARY = "libashlar_torch_native.so"
SOURCES = "lib/ashlar/torch_native"  # of an installation, and of a build folder
PREBUILT = "lib/ashlar/torch_prebuilt"  # the same
FLAGS = ["-std=c++20", "-O2", "-w", "-shared", "-fPIC", "-fno-plt", "-fvisibility=hidden", "-fvisibility-inlines-hidden"]
LINKED = ["-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,now"]
NOT_PYTORCHS = _torch_settings.OURS | {"policy"}  # keys that PyTorch's own settings have not
MOST_SECONDS = 300
LEAST_RELEASE = (2, 12)  # whose class has what is overridden here


class Unavailable(Exception):
    """In one line: why this PyTorch is not served this way."""


def identity(torch):
    """What runs, as the library names what it was compiled for."""
    major, minor = ((torch.version.cuda or "0.0").split(".") + ["0"])[:2]
    version = torch.__version__.partition("+")[0]
    return (f"{version} abi{int(torch.compiled_with_cxx11_abi())} cuda{1000 * int(major) + 10 * int(minor)} "
            f"{torch.version.git_version}")


def _release(torch):
    return tuple(int("".join(char for char in part if char.isdigit()) or 0) for part in torch.__version__.split(".")[:2])


def _sources():
    for prefix in _native.prefixes():
        if (prefix / SOURCES / "ashlar.h").is_file():
            return prefix / SOURCES
    raise Unavailable("its sources are not installed (lib/ashlar/torch_native)")


def _cuda_includes(torch):
    """Folders with CUDA's headers: of NVIDIA's wheels, of Triton's, which have what those lack, and of a toolkit."""
    packages = pathlib.Path(torch.__file__).parent.parent
    major = (torch.version.cuda or "").partition(".")[0]
    toolkit = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    folders = [packages / f"nvidia/cu{major}/include", packages / "nvidia/cuda_runtime/include",
               packages / "triton/backends/nvidia/include", pathlib.Path(toolkit) / "include"]
    found = [folder for folder in folders if folder.is_dir()]
    if not any((folder / "cuda_runtime_api.h").is_file() for folder in found):
        raise Unavailable("CUDA's headers (cuda_runtime_api.h) are not there: set CUDA_HOME")
    return found


def _loaded(stem):
    """The path of a library of this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[5].strip() if line.count("/") else ""
            if os.path.basename(path).startswith(stem):
                return path
    raise Unavailable(f"the process has no {stem}")


def _compiler():
    for name in (os.environ.get("CXX"), "g++", "c++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise Unavailable("there is no C++ compiler (g++)")


def _environment():
    """A compiler is no program of the hollow device's."""
    return {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}


def _command(torch, folder, source, target):
    libraries = [str(pathlib.Path(torch.__file__).parent / "lib" / name) for name in ("libc10.so", "libc10_cuda.so")]
    includes = [f"-I{folder}", f"-isystem{pathlib.Path(torch.__file__).parent / 'include'}"]
    includes += [f"-isystem{path}" for path in _cuda_includes(torch)]
    defines = [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
               f'-DASHLAR_TORCH_GIT="{torch.version.git_version}"']
    return [_compiler(), *FLAGS, *defines, *includes, str(source), "-o", str(target), *libraries, _loaded("libcudart.so"),
            _native.library(c.SONAME), *LINKED]


def _compile(torch, folder, target):
    """All sources as one, into a file that appears whole."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        source, made = pathlib.Path(scratch) / "all.cc", pathlib.Path(scratch) / LIBRARY
        files = sorted(path.relative_to(folder) for path in folder.glob("**/*.cc"))
        source.write_text("".join(f'#include "{path}"\n' for path in files), encoding="utf-8")
        try:
            done = subprocess.run(_command(torch, folder, source, made), capture_output=True, text=True, check=False,
                                  env=_environment(), timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"the compiler took more than {MOST_SECONDS} s") from None
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
            raise Unavailable(f"it does not compile against this PyTorch's headers ({(errors or ['no error told'])[0][:200]})")
        os.replace(made, target)


def _cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "ashlar" / "torch_native"


def _key(torch, folder):
    digest = hashlib.sha256(identity(torch).encode())
    digest.update(" ".join(FLAGS + LINKED).encode())
    for path in sorted(folder.glob("**/*.*")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _built(torch):
    """The path of the library, built where it is not there."""
    folder = _sources()
    target = _cache() / f"{torch.__version__}-{_key(torch, folder)}" / LIBRARY
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_file():
            _compile(torch, folder, target)
    return target


def _prebuilt(torch):
    """The library that came with the package for this very PyTorch, opened; None: there is none, or none that loads here."""
    for prefix in _native.prefixes():
        path = prefix / PREBUILT / (identity(torch).replace(" ", "-") + ".so")
        if path.is_file():
            with contextlib.suppress(OSError):
                return ctypes.CDLL(str(path))
    return None


def pytorchs_own(conf):
    """Of settings, those that PyTorch has."""
    text = _torch_settings.as_recorded({"PYTORCH_CUDA_ALLOC_CONF": conf})["PYTORCH_CUDA_ALLOC_CONF"]
    return ",".join(f"{key}:{value}" for key, value in _torch_settings.pairs(text)[0] if key not in NOT_PYTORCHS)


class Native:
    def __init__(self, library, torch):
        self._library = library
        self._torch = torch
        self._conf = ""
        self._set = None  # PyTorch's own function for settings

    @classmethod
    def load(cls, torch):
        """Unavailable: why not."""
        if _release(torch) < LEAST_RELEASE:
            raise Unavailable(f"PyTorch {torch.__version__} is older than {'.'.join(map(str, LEAST_RELEASE))}")
        try:
            c.library()  # what it needs of ours is found in the process
            found = _prebuilt(torch) or ctypes.CDLL(str(_built(torch)))
        except OSError as error:
            raise Unavailable(f"it cannot be built or loaded ({error})") from None
        for name in ("install", "change"):
            function = getattr(found, "ashlar_torch_native_" + name)
            function.argtypes, function.restype = [ctypes.c_char_p] * (1 if name == "install" else 2), ctypes.c_int32
        found.ashlar_torch_native_built_for.restype = ctypes.c_char_p
        found.ashlar_torch_native_allocator.restype = ctypes.c_void_p
        built_for = found.ashlar_torch_native_built_for().decode()
        if built_for != identity(torch):
            raise Unavailable(f"it was built for {built_for}, and {identity(torch)} runs")
        return cls(found, torch)

    def allocator(self):
        """The address of the C++ object."""
        return self._library.ashlar_torch_native_allocator()

    def install(self, conf):
        """`conf`: the settings of the process's allocators. PyTorch's own settings become the same, as far as it has them:
        histories name them, and other parts of PyTorch read them."""
        self._conf = conf
        own = pytorchs_own(conf)
        name = next((name for name in ("_accelerator_setAllocatorSettings",
                                       "_cuda_cudaCachingAllocator_set_allocator_settings")
                     if hasattr(self._torch._C, name)), None)
        if name is not None:
            self._set = getattr(self._torch._C, name)
            if own:
                with contextlib.suppress(RuntimeError):  # a key that only other releases have
                    self._set(own)
            setattr(self._torch._C, name, self.change_settings)
        if self._library.ashlar_torch_native_install(_torch_settings.as_recorded({"PYTORCH_CUDA_ALLOC_CONF": conf})
                                                     ["PYTORCH_CUDA_ALLOC_CONF"].encode()) != c.OK:
            raise Unavailable("PyTorch did not take it")

    def change_settings(self, text):
        """In place of PyTorch's function: keys that are named get these values. What PyTorch takes and Ashlar does not
        change while it runs is a warning, since the program goes on."""
        out = self._set(text)
        given = dict(_torch_settings.pairs(text)[0])
        kept = [(key, value) for key, value in _torch_settings.pairs(self._conf)[0] if key not in given]
        conf = ",".join(f"{key}:{value}" for key, value in kept + list(given.items()))
        recorded = _torch_settings.as_recorded({"PYTORCH_CUDA_ALLOC_CONF": conf})["PYTORCH_CUDA_ALLOC_CONF"]
        if self._library.ashlar_torch_native_change(recorded.encode(), conf.encode()) != c.OK:
            warnings.warn(f"ashlar: the allocator keeps its settings: {c.last_error()}", stacklevel=3)
        else:
            self._conf = conf
        return out
