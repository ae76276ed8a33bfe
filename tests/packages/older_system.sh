#!/usr/bin/env bash
# The wheel on an older Debian, by chroot: older_system.sh WHEEL [SUITE, bullseye unless named]. It needs root and debootstrap; the
# system lies in build/older/SUITE and is made once. Bullseye has glibc 2.31 and Python 3.9.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/prepare.sh"

wheel=$1
suite=${2:-bullseye}
system=$root/build/older/$suite

InstallPackages "debootstrap=debootstrap"
if [[ ! -x $system/usr/bin/python3 ]]; then
  MakeBuildFolder
  Say "makes a Debian $suite in $system"
  mkdir -p "$system"
  debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$system" >"$log_dir/debootstrap.log" 2>&1 ||
    Fail "debootstrap failed: see $log_dir/debootstrap.log"
fi
In() { chroot "$system" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root "$@"; }
mount -t proc proc "$system/proc" || Fail "cannot mount /proc into $system"
trap 'umount "$system/proc"' EXIT
rm -rf "$system/ashlar"
mkdir -p "$system/ashlar"
cp "$wheel" "$root/docs/examples/training_oom.pickle" "$root/tests/packages/device_calls.py" "$system/ashlar"
[[ -e $system/dev/null ]] || mknod -m 666 "$system/dev/null" c 1 3
Say "$(In ldd --version | head -n 1), $(In python3 --version)"
In python3 -m venv /ashlar/venv
In /ashlar/venv/bin/pip install -q --no-index "/ashlar/$(basename "$wheel")"
for name in ashlar ashlar-gpu; do Say "$name $(In "/ashlar/venv/bin/$name" --version)"; done
In /ashlar/venv/bin/ashlar explain /ashlar/training_oom.pickle --capacity 12GiB | grep -E "^VERDICT|^PASTE"
In /ashlar/venv/bin/ashlar dry-run --device T4 -- python3 /ashlar/device_calls.py 2>&1 | grep -E "MiB in all|DRY RUN|300.00 MiB"
In /ashlar/venv/bin/python -c '
import ctypes, pkgutil, ashlar_gpu
from ashlar_gpu import _native
library = ctypes.CDLL(_native.library("libashlar.so.1"))
library.ashlar_version.restype = ctypes.c_char_p
print("libashlar.so.1", library.ashlar_version().decode())'
Say "done: the wheel works on $suite"
