# Sourced by the scripts beside it: progress lines, the packages a build needs, configure and build by preset.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=${ASHLAR_JOBS:-$(nproc)}
presets="release cuda hollow dev asan tsan fuzz nocuda aarch64"  # those that are built and tested
log_dir=$root/build/logs

# Debian package = a command or file that shows it is there (it may have come by another way than apt).
build_packages="build-essential=g++ cmake=cmake ninja-build=ninja python3=python3
  libabsl-dev=/usr/include/absl/base/config.h libgtest-dev=/usr/include/gtest/gtest.h
  libgmock-dev=/usr/include/gmock/gmock.h libbenchmark-dev=/usr/include/benchmark/benchmark.h
  nlohmann-json3-dev=/usr/include/nlohmann/json.hpp libcli11-dev=/usr/include/CLI/CLI.hpp
  zlib1g-dev=/usr/include/zlib.h"
test_packages="pkgconf=pkg-config openmpi-bin=mpirun libopenmpi-dev=mpicc"  # the tests consumer.pkg_config, and of fleet under MPI
page_packages="nodejs=node npm=npm chromium=chromium"  # to build and test the page; the program has it as a file
web_packages="emscripten=emcc node-acorn=/usr/share/nodejs/acorn brotli=brotli xz-utils=xz dpkg-dev=dpkg-source
  nodejs=node npm=npm nlohmann-json3-dev=/usr/include/nlohmann/json.hpp cmake=cmake ninja-build=ninja"  # to build tools/web
clang_packages="clang=clang++ libclang-rt-dev=/usr/share/doc/libclang-rt-dev libc++-dev=/usr/share/doc/libc++-dev
  libc++abi-dev=/usr/share/doc/libc++abi-dev"  # clang's own standard library, by which a test compiles a client

Say() { printf '[%3d s] %s\n' "$SECONDS" "$*"; }

Fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

IsThere() { case $1 in /*) [[ -e $1 ]] ;; *) command -v "$1" >/dev/null ;; esac }

# Everything that is written goes under build/, logs into build/logs.
MakeBuildFolder() {
  mkdir -p "$log_dir" 2>/dev/null && [[ -w $root/build ]] || Fail "cannot write to $root/build: copy the tree to a folder of yours"
}

# InstallPackages "package=probe ...": installs what its probe does not find; silent where all is there.
InstallPackages() {
  local pair missing=() as_root=()
  for pair in $1; do IsThere "${pair#*=}" || missing+=("${pair%%=*}"); done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  command -v apt-get >/dev/null || Fail "no apt-get here: install what these Debian packages hold: ${missing[*]}"
  if [[ $(id -u) -ne 0 ]]; then
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(-n)  # nobody is there to type a password
    "${as_root[@]}" true 2>/dev/null || Fail "packages are missing, and only root may install them: apt-get install ${missing[*]}"
  fi
  Say "installs with apt-get: ${missing[*]}"
  MakeBuildFolder
  # With no package lists yet (a fresh container) the update must succeed; a failed one shows in the install as well.
  { "${as_root[@]}" apt-get update -q || true
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
  } >"$log_dir/apt.log" 2>&1 || { tail -n 5 "$log_dir/apt.log" >&2; Fail "apt-get failed: see $log_dir/apt.log"; }
}

# Configure PRESET [cmake arguments]: only the first time; afterwards ninja does it when a CMake file changed. Shows
# which parts are left out, and why.
Configure() {
  local preset=$1
  shift
  [[ ! -f $root/build/$preset/build.ninja ]] || return 0
  MakeBuildFolder
  Say "configures build/$preset"
  (cd "$root" && cmake --preset "$preset" "$@") >"$log_dir/configure-$preset.log" 2>&1 || {
    tail -n 20 "$log_dir/configure-$preset.log" >&2
    Fail "cmake --preset $preset failed: see $log_dir/configure-$preset.log"
  }
  sed -n 's/^-- \(left out: .*\)/        \1/p' "$log_dir/configure-$preset.log"
}

# OwnAptLists FOLDER TYPE [OPTION]: sets `lists` to the options by which apt-get reads Debian's packages (TYPE deb) or sources
# (deb-src) by lists of our own in FOLDER, beside apt's.
OwnAptLists() {
  local folder=$1 type=$2 options=${3:-} keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$folder/lists/partial"
  [[ ! -f $keyring ]] || options+=" signed-by=$keyring"
  apt-get indextargets --format "$type ${options:+[$options] }\$(REPO_URI) \$(RELEASE) \$(COMPONENT)" "Created-By: Packages" \
    "Origin: Debian" | sort -u >"$folder/sources.list"
  lists=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$folder/lists"
    -o APT::Sandbox::User=root)
}

# FetchSource PACKAGE: the source that Debian's package is made of, in build/PACKAGE/source.
FetchSource() {
  local package=$1 folder=$root/build/$1 lists release
  [[ ! -f $folder/source/CMakeLists.txt ]] || return 0
  Say "downloads the source of $package"
  MakeBuildFolder
  rm -rf "$folder"
  OwnAptLists "$folder" deb-src
  # The release itself where its security updates name a file that their mirror has not.
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  (cd "$folder" && apt-get "${lists[@]}" -q update &&
    { apt-get "${lists[@]}" -q source --download-only "$package" ||
      apt-get "${lists[@]}" -q source --download-only "$package/$release"; } &&
    dpkg-source --no-check -x "${package}"_*.dsc source) >"$log_dir/$package.log" 2>&1 ||
    { tail -n 5 "$log_dir/$package.log" >&2; Fail "no source of $package; see $log_dir/$package.log"; }
}

# CublasHeaders FOLDER: puts cuBLAS's headers, of the nvcc on PATH's major version, into FOLDER/include. PyPI's wheel has
# them, and many toolkits have not; what is compiled with them loads the GPU machine's own cuBLAS.
CublasHeaders() {
  local folder=$1 wheel
  [[ ! -f $folder/include/cublas_v2.h ]] || return 0
  case $(nvcc --version | sed -nE 's/.*release ([0-9]+)\..*/\1/p') in
    12) wheel=nvidia-cublas-cu12==12.0.2.224 ;;
    13) wheel=nvidia-cublas==13.0.0.19 ;;
    *) Fail "no cuBLAS headers are known for this nvcc: $(nvcc --version | tail -n 1)" ;;
  esac
  Say "downloads $wheel for its headers"
  MakeBuildFolder
  mkdir -p "$folder"
  python3 -m pip download --quiet --no-deps --dest "$folder" "$wheel" >"$log_dir/cublas.log" 2>&1 ||
    { tail -n 5 "$log_dir/cublas.log" >&2; Fail "pip download $wheel failed: see $log_dir/cublas.log"; }
  python3 - "$folder" <<'END'
import glob, os, sys, zipfile
folder = sys.argv[1]
(wheel,) = glob.glob(folder + "/*.whl")
os.makedirs(folder + "/include", exist_ok=True)
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if "/include/" in name and name.endswith(".h"):
            with open(folder + "/include/" + os.path.basename(name), "wb") as header:
                header.write(archive.read(name))
os.remove(wheel)
END
}

# FixedAddresses COMMAND...: without address randomisation where the system allows that: the sanitizers of GCC 12 and
# clang 14 refuse to start now and then under kernels that randomise more bits than they know of.
FixedAddresses() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

# Tests PRESET [ctest arguments]: files that tests make go under build/, so that no two users' meet. Every single test is
# printed, and the last line counts them.
Tests() {
  local build=$root/build/$1 status=0 on_it=()  # what runs a command on the machine that is built for
  [[ $1 != aarch64 ]] || on_it=("$root/tools/aarch64")
  shift
  rm -rf "$build/results"
  mkdir -p "$build/tmp" "$build/results"
  TMPDIR=$build/tmp TEST_TMPDIR=$build/tmp FixedAddresses "${on_it[@]}" ctest --test-dir "$build" -j "$jobs" --output-on-failure \
    --no-tests=error --output-junit "$build/results/entries.xml" "$@" || status=$?
  [[ -f $build/results/entries.xml ]] || return "$status"  # ctest has said why
  python3 -B "$root/tools/gate/results.py" "$build/results" && return "$status"
}

# Build PRESET [TARGET...]: one status line on a terminal, only the errors elsewhere.
Build() {
  local preset=$1 quiet=()
  shift
  [[ -t 1 ]] || quiet=(--quiet)
  Configure "$preset"
  Say "builds ${*:-everything} in build/$preset with $jobs jobs"
  FixedAddresses ninja -C "$root/build/$preset" -j "$jobs" "${quiet[@]}" "$@" || Fail "the build failed: build/$preset ${*:-}"
}

if [[ -z ${ASHLAR_SHARED_DIR:-} && -d $root/../shared/corpus ]]; then
  ASHLAR_SHARED_DIR=$(cd "$root/../shared" && pwd)
  export ASHLAR_SHARED_DIR
fi
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
