// The ops on host memory: the reference, and usable in a demo. Plain loops in float that the compiler vectorises, one
// thread, sums in a fixed order: the same result on every machine, but for matmul where it comes from a BLAS and for
// what the C library's exp, log, tanh and erf return.
#ifndef ASHLAR_KERNELS_OPS_HOST_HOST_OPS_H_
#define ASHLAR_KERNELS_OPS_HOST_HOST_OPS_H_

#include "kernels/ops/ops.h"

namespace ashlar::ops {

class HostOps final : public Ops {
 public:
  using Ops::Ops;

 protected:
#define ASHLAR_OVERRIDE_DO(Op) absl::Status Do(const Op& op) override;
  ASHLAR_FOR_EACH_OP(ASHLAR_OVERRIDE_DO)
#undef ASHLAR_OVERRIDE_DO
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_HOST_HOST_OPS_H_
