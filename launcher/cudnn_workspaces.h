// What a run's plans of cuDNN would ask of their caller, by the heuristics of the library that the program brought.
// They are asked without a device, in a process of its own that has a limited time: whatever the library does there,
// the run has ended before.
//
//   const libraries::CudnnUse told = AskCudnn(plans, std::chrono::seconds(10));
//   told.most_bytes;   // of the plan that asks most
//
// cuDNN makes plans for a device that JSON describes, from 9.8 on (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). The first
// configuration that becomes a plan is taken, as PyTorch takes it, which leaves out those that convert float's inputs
// down. Sizes are bytes.
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

libraries::CudnnUse AskCudnn(const CudnnPlans& plans, std::chrono::milliseconds most);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_CUDNN_WORKSPACES_H_
