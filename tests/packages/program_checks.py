"""What an installed program must do, whatever package brought it: the tests of each package call these."""

import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSION = re.search(r"project\(ashlar VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def run(*command, cwd="/", environment=None, code=0):
    """The output of a command in an environment without anything of this tree; it ends with the code."""
    clean = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "HOME": str(cwd), "LC_ALL": "C.UTF-8"} | (environment or {})
    ended = subprocess.run([str(word) for word in command], cwd=cwd, env=clean, capture_output=True, text=True)
    assert ended.returncode == code, f"{command} ended with {ended.returncode}:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
    return ended.stdout + ended.stderr


def check_version(program):
    assert run(program, "--version").strip() == VERSION


def check_explain(program):
    text = run(program, "explain", ROOT / "docs/examples/training_oom.pickle", "--capacity", "12GiB")
    for part in ("VERDICT        fragmentation", "FIX            export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"):
        assert part in text, text


def check_dry_run(program, python, folder):
    """A program gets the hollow device, and its calls are counted."""
    text = run(program, "dry-run", "--device", "T4", "--", python, HERE / "device_calls.py", cwd=folder)
    assert "MiB in all" in text and "300.00 MiB" in text, text
    run(program, "dry-run", "--", python, "-c", "raise SystemExit(7)", cwd=folder, code=7)
    auditor = run(program, "dry-run", "--", "printenv", "LD_AUDIT", cwd=folder).splitlines()[0]
    assert pathlib.Path(auditor).name == "libashlar_audit.so" and pathlib.Path(auditor).exists(), auditor


def check_torch(program, python, folder):
    text = run(program, "dry-run", "--", python, HERE / "train.py", cwd=folder)
    assert "trained" in text and "A100-80GB" in text, text


def check_exports(library):
    """A library shows C functions alone: CUDA's names and those of its libraries, how a program looks names up and ends,
    and our own; nothing of Abseil or of C++'s standard library. What is for PyTorch shares the variables of c10's functions; the
    auditor has what the dynamic linker asks for."""
    allowed = r"ashlar_" if library.name.startswith("libashlar.so") else \
        r"ashlar_|_Z(GV)?ZN3c10" if library.parent.name == "torch_prebuilt" else \
        r"la_(version|objopen)$" if library.name == "libashlar_audit.so" else \
        r"cu|nv|p?nccl|__cuda|ashlar_|dlsym$|dlopen$|dlvsym$|_exit$|_Exit$"
    lines = run("nm", "--dynamic", "--defined-only", "--extern-only", "--format=posix", library).splitlines()
    names = [line.split()[0].split("@")[0] for line in lines]
    foreign = [name for name in names if not re.match(allowed, name)]
    assert names and not foreign, f"{library} exports {foreign[:10]} ({len(foreign)} of {len(names)})"
