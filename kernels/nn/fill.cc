#include "kernels/nn/fill.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/base/rng.h"
#include "kernels/tensor/context.h"

namespace ashlar::kernels {
namespace {

void UploadFloats(const Tensor& tensor, absl::Span<const float> values) {
  ASHLAR_CHECK(tensor.dtype() == DType::kFloat32 && IsContiguous(tensor.layout()));
  tensor.context().CopyBytes(tensor.view().data, values.data(), values.size() * sizeof(float));
}

}  // namespace

void FillNormal(const Tensor& tensor, double mean, double deviation) {
  Context& context = tensor.context();
  if (!context.computes()) return;
  if (deviation == 0) return context.Do(ops::Fill{tensor.view(), mean});
  const ops::RandomKey key = context.Draw(tensor.elements());
  Rng rng(key.seed * 0x9E3779B97F4A7C15 + key.offset);
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for (float& value : values) {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(1 - rng.Unit()));
    value = static_cast<float>(mean + deviation * radius * std::cos(2 * std::numbers::pi * rng.Unit()));
  }
  UploadFloats(tensor, values);
}

void FillRotary(const Tensor& table, double theta) {
  if (!table.context().computes()) return;
  const std::int64_t length = table.size(1), half = table.size(2);
  std::vector<float> values(static_cast<std::size_t>(table.elements()));
  for (std::int64_t s = 0; s < length; ++s) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(s) * std::pow(theta, -static_cast<double>(i) / static_cast<double>(half));
      const auto at = static_cast<std::size_t>(s * half + i);
      values[at] = static_cast<float>(std::cos(angle));
      values[at + static_cast<std::size_t>(length * half)] = static_cast<float>(std::sin(angle));
    }
  }
  UploadFloats(table, values);
}

Tensor CountedPositions(Context& context, std::int64_t length) {
  Tensor out = Empty(context, {1, length}, DType::kInt64);
  if (context.computes()) context.Do(ops::Arange{Alias(out, {{length}, {1}}, 0).view(), 0, 1});
  return out;
}

void FillIds(const Tensor& tensor, absl::Span<const std::int64_t> values) {
  Context& context = tensor.context();
  if (!context.computes()) return;
  ASHLAR_CHECK(tensor.elements() == static_cast<std::int64_t>(values.size()));
  if (tensor.dtype() == DType::kInt64) {
    return context.CopyBytes(tensor.view().data, values.data(), values.size() * sizeof(std::int64_t));
  }
  ASHLAR_CHECK(tensor.dtype() == DType::kInt32);
  const std::vector<std::int32_t> narrow(values.begin(), values.end());
  context.CopyBytes(tensor.view().data, narrow.data(), narrow.size() * sizeof(std::int32_t));
}

}  // namespace ashlar::kernels
