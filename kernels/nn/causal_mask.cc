#include "kernels/nn/causal_mask.h"

#include <limits>
#include <vector>

#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

bool IsSeen(std::int64_t query, std::int64_t key, const std::optional<std::int64_t>& window) {
  return key <= query && (!window.has_value() || query - key < *window);
}

}  // namespace

Tensor CausalBuffer(Context& context, std::int64_t length, std::optional<std::int64_t> window) {
  Tensor out = Empty(context, {1, 1, length, length}, DType::kBool, Part::kWeights);
  if (!context.computes()) return out;
  std::vector<std::uint8_t> sees;
  for (std::int64_t query = 0; query < length; ++query) {
    for (std::int64_t key = 0; key < length; ++key) sees.push_back(IsSeen(query, key, window) ? 1 : 0);
  }
  context.CopyBytes(out.view().data, sees.data(), sees.size());
  return out;
}

Tensor CausalBias(Context& context, std::int64_t length, DType dtype, std::optional<std::int64_t> window) {
  Tensor lowest = Empty(context, {length, length + 1}, dtype);
  const Tensor upper = EmptyLike(lowest);  // triu
  lowest.reset();
  Tensor columns = Empty(context, {length + 1}, DType::kInt64);
  const Tensor is_later = Empty(context, {length, length + 1}, DType::kBool);
  columns.reset();
  if (context.computes() && dtype == DType::kFloat32) {
    std::vector<float> values;
    for (std::int64_t query = 0; query < length; ++query) {
      for (std::int64_t key = 0; key <= length; ++key) {
        values.push_back(IsSeen(query, key, window) ? 0 : std::numeric_limits<float>::lowest());
      }
    }
    context.CopyBytes(upper.view().data, values.data(), values.size() * sizeof(float));
  }
  return View(upper, {1, 1, length, length + 1});
}

}  // namespace ashlar::kernels
