#include "kernels/workloads/workload.h"

#include <vector>

namespace ashlar::kernels {

absl::Span<const Workload> Workloads() {
  static const std::vector<Workload>* all = new std::vector<Workload>{
      kAttentionInference, kBertTraining, kEmbeddingServing, kGptTraining, kStreamFanout, kTabformerTraining};
  return *all;
}

const Workload* FindWorkload(absl::string_view name) {
  for (const Workload& workload : Workloads()) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

}  // namespace ashlar::kernels
