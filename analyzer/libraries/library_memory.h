// What NVIDIA's libraries take of a device for themselves, beside what a program asks for: a part for each library that
// the process called. A report adds them to what it saw.
//
//   for (const MemoryPart& part : LibraryParts({.cublas_handles = 1, .has_torch = true}, {9, 0}))
//   part.bytes.most_bytes;
//
// Sources: docs/measurements/h200.md ("What the libraries take"), and NVIDIA's documentation of cuBLAS
// (cublasSetWorkspace: a handle has a workspace of its own, of 4 MiB, and of 32 MiB from Hopper on). PyTorch gives
// cuBLAS its workspaces (CUBLAS_WORKSPACE_CONFIG, CUBLASLT_WORKSPACE_SIZE): those are in its allocator's memory, and so
// in what was seen. Sizes are bytes.
#ifndef ASHLAR_ANALYZER_LIBRARIES_LIBRARY_MEMORY_H_
#define ASHLAR_ANALYZER_LIBRARIES_LIBRARY_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/gpus/gpu_table.h"
#include "analyzer/libraries/nccl_memory.h"

namespace ashlar::libraries {

// What cuDNN's plans would ask of their caller, by its own heuristics (launcher/cudnn_workspaces.h).
struct CudnnUse {
  std::size_t plans = 0;     // that differ
  std::size_t answered = 0;  // of these
  std::uint64_t most_bytes = 0;
  std::uint64_t version = 0;  // 92400
  std::string why_not = {};   // no plan was answered: in words
  bool is_in_peak = false;    // the plans had these workspaces while the program ran: they are its caller's memory

  void Add(const CudnnUse& other);  // of another process
};
std::string CudnnVersionText(std::uint64_t version);  // "9.24"

// Of one process on one device.
struct UsedLibraries {
  int cublas_handles = 0;  // the most at a time
  bool has_cudnn = false;
  CudnnUse cudnn = {};
  bool has_torch = false;
  NcclUse nccl = {};
};

// How a size is known.
inline constexpr char kMeasured[] = "measured";
inline constexpr char kComputed[] = "computed";
inline constexpr char kAssumed[] = "assumed";

struct MemoryPart {
  std::string name;  // "NCCL"
  BytesBetween bytes;
  std::string mark;
  std::string source;
};

std::vector<MemoryPart> LibraryParts(const UsedLibraries& use, gpus::Capability capability);

}  // namespace ashlar::libraries

#endif  // ASHLAR_ANALYZER_LIBRARIES_LIBRARY_MEMORY_H_
