#!/usr/bin/env bash
# tests/gpu/run.sh BUILD: every check on a real GPU in one call, from the build folder BUILD. It builds nothing, and takes
# no package but a shell: the programs link what they need (docs/library/devices.md). Without a GPU it says so and is done.
set -uo pipefail

build=${1:-build/release}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
passed=0
failed=()
skipped=()

# Step NAME COMMAND...: runs it, shows its output, counts it.
Step() {
  local name=$1 begin=$SECONDS
  shift
  printf '\n=== %s ===\n' "$name"
  if "$@"; then
    passed=$((passed + 1))
  else
    failed+=("$name: exit code $?")
  fi
  printf '%s: %d s\n' "$name" $((SECONDS - begin))
}

# StepOf PROGRAM ARGUMENTS...: the program of the build, or a word that it is not there.
StepOf() {
  local program=$1
  shift
  if [[ -x $build/$program ]]; then
    Step "$program" "$build/$program" "$@"
  else
    skipped+=("$program: not built")
  fi
}

# Memcheck of a test program, each block a region of its own; a finding is exit code 9.
Sanitize() {
  local program=$1 filter=$2
  if ! command -v compute-sanitizer >/dev/null; then
    skipped+=("compute-sanitizer $program: the tool is not there")
  elif [[ ! -x $build/$program ]]; then
    skipped+=("compute-sanitizer $program: not built")
  else
    Step "compute-sanitizer $program" env CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --nvtx=yes --error-exitcode=9 \
      "$build/$program" "--gtest_filter=$filter"
  fi
}

[[ -d $build ]] || { echo "$build: no such build folder: tests/gpu/run.sh BUILD" >&2; exit 2; }
if ! command -v nvidia-smi >/dev/null || [[ -n ${CUDA_VISIBLE_DEVICES+set} && -z $CUDA_VISIBLE_DEVICES ]] ||
  ! nvidia-smi -L >/dev/null 2>&1; then
  echo "skipped: there is no GPU here"
  exit 0
fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader

# Each program with the label gpu, and the program's own run.
while IFS= read -r program; do
  StepOf "${program#"$build"/}" --gtest_brief=1
done < <(find "$build/tests" -maxdepth 4 -type f -executable \( -name '*gpu*_test' -o -name kernels_cuda_test \) | sort)
StepOf bin/ashlar run gpt_training --model tiny --batch 16 --lengths uniform:16-256 --steps 20 --device cuda
Sanitize tests/gpu/gpu_stress_test '*NorWhileToolsAreToldOfEveryBlock*'
Sanitize tests/allocator/device/cuda_gpu_test 'CudaGpuTest.*'
StepOf bench/device_cost --device cuda
StepOf bench/gpu_compare
requests=$(mktemp -d)
StepOf bench/split_policies --requests "$requests"
if python3 -c 'import torch' 2>/dev/null; then
  Step "PyTorch's allocator" python3 "$here/bench/gpu_compare_torch.py"
  Step "PyTorch's allocator, workloads" python3 "$here/bench/split_policies_torch.py" "$requests"
else
  skipped+=("PyTorch's allocator: torch cannot be imported")
fi
rm -rf "$requests"

printf '\n'
for line in ${skipped[@]+"${skipped[@]}"}; do printf 'skipped: %s\n' "$line"; done
for line in ${failed[@]+"${failed[@]}"}; do printf 'failed: %s\n' "$line"; done
printf '%d steps passed, %d failed, %d skipped\n' "$passed" "${#failed[@]}" "${#skipped[@]}"
[[ ${#failed[@]} -eq 0 ]]
