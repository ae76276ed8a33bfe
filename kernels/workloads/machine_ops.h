// The ops of a machine as one: each runs on the memory's current stream, with scratch in that stream's order from an
// allocator of its own.
#ifndef ASHLAR_KERNELS_WORKLOADS_MACHINE_OPS_H_
#define ASHLAR_KERNELS_WORKLOADS_MACHINE_OPS_H_

#include <map>
#include <memory>

#include "kernels/ops/ops.h"
#include "kernels/ops/workspace.h"
#include "kernels/tensor/memory.h"
#include "kernels/workloads/machine.h"

namespace ashlar::kernels {

class MachineOps final : public ops::Ops {
 public:
  // All outlive it.
  MachineOps(Machine* machine, core::CachingAllocator* scratch, const Memory* memory)
      : Ops(nullptr), machine_(machine), scratch_(scratch), memory_(memory) {}

 protected:
#define ASHLAR_OVERRIDE_DO(Op) absl::Status Do(const ops::Op& op) override;
  ASHLAR_FOR_EACH_OP(ASHLAR_OVERRIDE_DO)
#undef ASHLAR_OVERRIDE_DO

 private:
  struct OnStream {
    ops::AllocatorWorkspace workspace;
    std::unique_ptr<ops::Ops> ops;
  };
  template <typename Op>
  absl::Status RunOnStream(const Op& op);
  absl::StatusOr<ops::Ops*> OpsOf(Stream stream);

  Machine* machine_;
  core::CachingAllocator* scratch_;
  const Memory* memory_;
  std::map<Stream, OnStream> streams_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_WORKLOADS_MACHINE_OPS_H_
