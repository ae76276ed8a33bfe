// The ops on host memory: the reference, and usable in a demo. Plain loops in float that the compiler vectorises, one
// thread, sums in a fixed order: the same result on every machine, but for matmul where it comes from a BLAS and for
// what the C library's exp, log, tanh and erf return.
#ifndef ASHLAR_KERNELS_OPS_HOST_HOST_OPS_H_
#define ASHLAR_KERNELS_OPS_HOST_HOST_OPS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/ops/ops.h"
#include "kernels/ops/view.h"

namespace ashlar::ops::host {

// Elements of any dtype as floats, in short pieces that stay in the first cache: how every host op reads and writes.

inline constexpr std::int64_t kPiece = 512;  // elements

// A row of elements: an address, a dtype, a step.
struct Row {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  std::int64_t stride = 1;
};
inline Row RowAt(const View& view, std::int64_t offset, std::int64_t stride = 1) {
  return {static_cast<char*>(view.data) + offset * SizeOf(view.dtype), view.dtype, stride};
}

// Elements [begin, begin + count) of a row as floats: where they lie, or copied to `buffer` (count <= kPiece).
const float* Load(const Row& row, std::int64_t begin, std::int64_t count, float* buffer);
// Rounds to nearest even where the dtype is a float's; integers cut towards 0 and saturate, a NaN gives 0.
void Store(const Row& row, std::int64_t begin, std::int64_t count, const float* values);
// Where floats may be put before Store(row, begin, count, the same): the row itself, or `buffer`.
float* Place(const Row& row, std::int64_t begin, float* buffer);

// One element, exactly for integers and as a double for floats.
std::int64_t LoadInteger(const Row& row, std::int64_t at);
double LoadNumber(const Row& row, std::int64_t at);
void StoreNumber(const Row& row, std::int64_t at, double value);
void StoreInteger(const Row& row, std::int64_t at, std::int64_t value);

// The one float32 of a view, such as a loss.
inline float& OneFloat(const View& view) { return *static_cast<float*>(view.data); }

// Calls body(begin, count) for the pieces of [0, length).
template <typename Body>
void ForPieces(std::int64_t length, const Body& body) {
  for (std::int64_t begin = 0; begin < length; begin += kPiece) body(begin, std::min(kPiece, length - begin));
}

}  // namespace ashlar::ops::host

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
