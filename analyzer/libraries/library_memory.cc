#include "analyzer/libraries/library_memory.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::libraries {
namespace {

constexpr std::uint64_t kHandleBytes = 66 * kMiB;  // of cuBLAS, on an H200, its own workspace among them
constexpr std::uint64_t kFirstKernelBytes = 92 * kMiB, kFirstConvolutionBytes = 8 * kMiB;

// The workspace of a handle is of 32 MiB on Hopper and the data centre's Blackwell, of 4 MiB elsewhere.
std::uint64_t WorkspaceBytes(gpus::Capability of) { return of.major == 9 || of.major == 10 ? 32 * kMiB : 4 * kMiB; }

MemoryPart KernelsPart(const UsedLibraries& use) {
  const std::uint64_t most = kFirstKernelBytes + (use.has_cudnn ? kFirstConvolutionBytes : 0);
  return {"kernels", {0, most}, kAssumed, "those that are loaded when they are first called; the most is an H200's"};
}

MemoryPart CublasPart(int handles, gpus::Capability capability) {
  const auto count = static_cast<std::uint64_t>(handles);
  const bool is_measured = capability == gpus::Capability{9, 0};
  const std::uint64_t least = is_measured ? kHandleBytes : WorkspaceBytes(capability);
  return {"cuBLAS",
          {count * least, count * kHandleBytes},
          kComputed,
          absl::StrCat(FormatCount(count), count == 1 ? " handle" : " handles",
                       is_measured
                           ? " of 66 MiB, as on an H200"
                           : absl::StrCat(": a workspace of ", FormatBytes(least), " each at least, 66 MiB on an H200"),
                       "; PyTorch's workspaces are its allocator's")};
}

// One workspace is there at a time, and goes back when its kernel was given.
MemoryPart CudnnPart(const CudnnUse& use) {
  if (use.is_in_peak && use.answered > 0) {
    const std::size_t silent = use.plans - use.answered;
    return {"cuDNN",
            {},
            kComputed,
            absl::StrCat("its workspaces are in the peak: its caller's memory",
                         silent == 0 ? "" : absl::StrCat("; but for ", FormatCount(silent), " plans of no answer"))};
  }
  if (use.plans == 0 || use.answered == 0) {
    return {"cuDNN",
            {},
            kAssumed,
            absl::StrCat("workspaces that it asks its caller for: they depend on the kernels chosen",
                         use.plans == 0 ? "" : "; it was not asked: ",
                         use.plans == 0        ? ""
                         : use.why_not.empty() ? "it knew none of its plans"
                                               : use.why_not)};
  }
  return {"cuDNN",
          {0, use.most_bytes},
          kComputed,
          absl::StrCat("the largest workspace of ", FormatCount(use.answered), " of ", FormatCount(use.plans),
                       use.plans == 1 ? " plan" : " plans", ", by the heuristics of cuDNN ",
                       CudnnVersionText(use.version), " without a device")};
}

}  // namespace

void CudnnUse::Add(const CudnnUse& other) {
  plans += other.plans;
  answered += other.answered;
  most_bytes = std::max(most_bytes, other.most_bytes);
  version = std::max(version, other.version);
  is_in_peak = is_in_peak || other.is_in_peak;
  if (why_not.empty()) why_not = other.why_not;
}

// 92400 is 9.24, and 8904 is 8.9.
std::string CudnnVersionText(std::uint64_t version) {
  return version < 10'000 ? absl::StrCat(version / 1000, ".", version / 100 % 10)
                          : absl::StrCat(version / 10'000, ".", version / 100 % 100);
}

std::vector<MemoryPart> LibraryParts(const UsedLibraries& use, gpus::Capability capability) {
  std::vector<MemoryPart> out;
  if (use.has_torch) out.push_back(KernelsPart(use));
  if (use.cublas_handles > 0) out.push_back(CublasPart(use.cublas_handles, capability));
  if (use.has_cudnn) {
    out.push_back(CudnnPart(use.cudnn));
  }
  if (!use.nccl.communicators.empty()) {
    out.push_back({"NCCL", NcclBytes(use.nccl, capability), kComputed, NcclSource(use.nccl)});
  }
  return out;
}

}  // namespace ashlar::libraries
