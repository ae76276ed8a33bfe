#include "analyzer/libraries/owners.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ashlar::libraries {
namespace {

struct Known {
  absl::string_view start;  // of the file's name
  absl::string_view owner;
};

constexpr Known kKnown[] = {
    {"libc10_cuda.", "PyTorch's allocator"},
    {"libtorch", "PyTorch"},
    {"libnccl", "NCCL"},
    {"libnvshmem", "NVSHMEM"},
    {"libcublas", "cuBLAS"},
    {"libcudnn", "cuDNN"},
    {"libcusolver", "cuSOLVER"},
    {"libcusparse", "cuSPARSE"},
    {"libcufft", "cuFFT"},
    {"libcurand", "cuRAND"},
    {"libnvinfer", "TensorRT"},
    {"librmm", "RMM"},
    {"libcudf", "cuDF"},
    {"libonnxruntime", "ONNX Runtime"},
    {"onnxruntime_pybind11_state", "ONNX Runtime"},
    {"xla_cuda_plugin", "XLA"},
    {"libggml", "ggml"},
    {"libbitsandbytes", "bitsandbytes"},
    {"libucx", "UCX"},
    {"libuct_cuda", "UCX"},
    {"libffi", "a call through libffi"},
};

// Packages of Python whose modules have names of their own.
constexpr Known kPackages[] = {{"/rmm/", "RMM"}, {"/cupy", "CuPy"}, {"/numba/", "Numba"}};

}  // namespace

std::string OwnerOf(absl::string_view file) {
  if (file.empty()) return "unknown";
  const absl::string_view name = file.substr(file.rfind('/') + 1);
  for (const Known& of : kKnown) {
    if (absl::StartsWith(name, of.start)) return std::string(of.owner);
  }
  for (const Known& of : kPackages) {
    if (absl::StrContains(file, of.start)) return std::string(of.owner);
  }
  const bool is_library = absl::StrContains(name, ".so") || absl::StrContains(name, ' ');
  return is_library ? std::string(name) : absl::StrCat("the program (", name, ")");
}

std::string OwnerAndFile(absl::string_view file) {
  const std::string owner = OwnerOf(file);
  const absl::string_view name = file.substr(file.rfind('/') + 1);
  return absl::StrContains(owner, name) ? owner : absl::StrCat(owner, " (", name, ")");
}

}  // namespace ashlar::libraries
