#include "kernels/workloads/machine_ops.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::kernels {

absl::StatusOr<ops::Ops*> MachineOps::OpsOf(Stream stream) {
  const auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second.ops.get();
  OnStream& made = streams_.try_emplace(stream, OnStream{{scratch_, stream}, nullptr}).first->second;
  absl::StatusOr<std::unique_ptr<ops::Ops>> ops = machine_->MakeOps(&made.workspace, stream);
  if (!ops.ok()) {
    streams_.erase(stream);
    return ops.status();
  }
  made.ops = *std::move(ops);
  return made.ops.get();
}

// Scratch that is not there is no answer to a request of the workload's.
template <typename Op>
absl::Status MachineOps::RunOnStream(const Op& op) {
  const absl::StatusOr<ops::Ops*> ops = OpsOf(memory_->stream());
  if (!ops.ok()) return ops.status();
  absl::Status status = (*ops)->Run(op);
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(
      absl::StrCat(Op::kName, ": the device has no memory left for scratch beside the workload's: give the workload a ",
                   "smaller --capacity"));
}

#define ASHLAR_DO(Op) \
  absl::Status MachineOps::Do(const ops::Op& op) { return RunOnStream(op); }
ASHLAR_FOR_EACH_OP(ASHLAR_DO)
#undef ASHLAR_DO

}  // namespace ashlar::kernels
