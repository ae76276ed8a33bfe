#!/usr/bin/env bash
# tests/gpu/over_hollow.sh BUILD: our own CUDA device, and the training program with kernels that nvcc built, over the hollow
# device. BUILD is of the preset hollow (CUDA's shared runtime). Kernels are launched and do not run: what is checked is
# memory. Where the build has no device code it says so and is done.
set -euo pipefail

build=$(cd "${1:-build/hollow}" && pwd)
program=$build/bin/ashlar
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [[ ! -x $build/tests/gpu/gpu_stress_test ]]; then
  echo "skipped: $build has no device code"
  exit 0
fi

# The contract of every device, and that its memory can be written and read: copies are real up to 1 GiB here.
printf 'total_bytes=2GiB\nreal_bytes=1GiB\n' >"$scratch/profile"
"$program" dry-run --profile "$scratch/profile" -- "$build/tests/allocator/device/cuda_gpu_test" --gtest_brief=1 2>"$scratch/err" |
  tee "$scratch/contract"
grep -q '^\[  PASSED  \] [1-9][0-9]* tests\.$' "$scratch/contract" || { cat "$scratch/err" >&2; exit 1; }
if grep -q 'SKIPPED' "$scratch/contract"; then
  echo "the tests of the CUDA device were skipped: the hollow device was not seen" >&2
  exit 1
fi

# The same training over the CUDA device and over the simulated one: the same peaks, to the byte. A name of cuBLAS is found
# in the hollow device, whatever file has the library's name.
ln -s "$build/hollow/shims/libcuda.so.1" "$scratch/libcublas.so.13"
ln -s "$build/hollow/shims/libcuda.so.1" "$scratch/libcublas.so.12"
training=(run gpt_training --model tiny --batch 16 --lengths uniform:16-256 --steps 20)
LD_LIBRARY_PATH=$scratch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
  "$program" dry-run --device A100-80GB -- "$program" "${training[@]}" --device cuda 2>"$scratch/err" >"$scratch/cuda" ||
  { cat "$scratch/cuda" "$scratch/err" >&2; exit 1; }
"$program" "${training[@]}" --device sim --capacity 79.25GiB >"$scratch/sim"
for device in cuda sim; do grep -E '^(steps|peak|  [a-z])' "$scratch/$device" >"$scratch/$device.peaks"; done
diff "$scratch/cuda.peaks" "$scratch/sim.peaks"
cat "$scratch/cuda.peaks"
echo "passed: the CUDA device over the hollow device"
