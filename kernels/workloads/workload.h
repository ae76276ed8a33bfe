// The workloads: programs that take every byte from the allocator, written once for every runtime.
//
//   const Workload* workload = FindWorkload("bert_training");
//   Flags flags(workload->flags);
//   absl::Status status = workload->run(runtime, flags, [](const Progress& progress) { ... });
#ifndef ASHLAR_KERNELS_WORKLOADS_WORKLOAD_H_
#define ASHLAR_KERNELS_WORKLOADS_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/workloads/flags.h"
#include "kernels/workloads/runtime.h"

namespace ashlar::kernels {

// After each step of `steps`; the loss where there is one and arithmetic.
struct Progress {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::optional<double> loss = {};
};
using OnProgress = std::function<void(const Progress&)>;

struct Workload {
  absl::string_view name;
  absl::string_view summary;
  absl::Span<const FlagSpec> flags;
  // InvalidArgument for a flag; otherwise the memory's status (kResourceExhausted: out of memory), nothing lost: the
  // runtime can be asked what happened.
  absl::Status (*run)(Runtime& runtime, Flags& flags, const OnProgress& on_progress);
};

// By name.
absl::Span<const Workload> Workloads();
const Workload* FindWorkload(absl::string_view name);

extern const Workload kAttentionInference;
extern const Workload kBertTraining;
extern const Workload kEmbeddingServing;
extern const Workload kGptTraining;
extern const Workload kStreamFanout;
extern const Workload kTabformerTraining;

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_WORKLOADS_WORKLOAD_H_
