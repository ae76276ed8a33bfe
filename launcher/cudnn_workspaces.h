// What a run's plans of cuDNN would ask of their caller, by the heuristics of the library that the program brought. It
// is asked after the run, and for a limited time (cudnn_process.h).
//
//   const libraries::CudnnUse told = AskCudnn(plans, std::chrono::seconds(10));
//   told.most_bytes;   // of the plan that asks most
//
// Sizes are bytes.
#ifndef ASHLAR_LAUNCHER_CUDNN_WORKSPACES_H_
#define ASHLAR_LAUNCHER_CUDNN_WORKSPACES_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/libraries/library_memory.h"

namespace ashlar::cli {

// As a process left them (hollow/api/cudnn/backend_text.h).
struct CudnnPlans {
  std::string library, cublaslt;  // files; cuDNN needs cuBLASLt
  std::string device;             // JSON
  std::vector<std::string> graphs = {};
  std::uint64_t more = 0;  // plans that were not kept

  bool operator==(const CudnnPlans&) const = default;
};

// Of --workspaces: "cudnn" has the library asked while the program runs, about each plan as it is made
// (cudnn_server.h).
inline constexpr char kNoWorkspaces[] = "none", kCudnnWorkspaces[] = "cudnn";

// What --workspaces cudnn did, in a sentence that begins with the flag.
std::string WorkspacesText(const libraries::CudnnUse& use);

libraries::CudnnUse AskCudnn(const CudnnPlans& plans, std::chrono::milliseconds most);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_CUDNN_WORKSPACES_H_
