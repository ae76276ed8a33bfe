#include "kernels/nn/t5_buckets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "kernels/nn/fill.h"
#include "kernels/tensor/context.h"

namespace ashlar::kernels {
namespace {

std::vector<std::int64_t> AllBuckets(const BucketRule& rule) {
  std::vector<std::int64_t> out;
  for (std::int64_t query = 0; query < rule.queries; ++query) {
    for (std::int64_t key = 0; key < rule.keys; ++key) out.push_back(BucketOf(key - query, rule));
  }
  return out;
}

}  // namespace

std::int64_t BucketOf(std::int64_t relative, const BucketRule& rule) {
  const std::int64_t count = rule.is_bidirectional ? rule.buckets / 2 : rule.buckets;
  const std::int64_t first = rule.is_bidirectional && relative > 0 ? count : 0;
  const std::int64_t distance = rule.is_bidirectional ? std::abs(relative) : std::max<std::int64_t>(-relative, 0);
  const std::int64_t exact = count / 2;
  if (distance < exact) return first + distance;
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(rule.max_distance) / static_cast<double>(exact));
  const auto large = exact + static_cast<std::int64_t>(share * static_cast<double>(count - exact));
  return first + std::min(large, count - 1);
}

Buckets RelativeBuckets(Context& context, const BucketRule& rule) {
  const auto make = [&](DType dtype) { return Empty(context, {rule.queries, rule.keys}, dtype); };
  Buckets out;
  if (!rule.has_positions) out.held.push_back(Empty(context, {rule.queries}, DType::kInt64));
  out.held.push_back(Empty(context, {rule.keys}, DType::kInt64));
  out.held.push_back(make(DType::kInt64));  // memory - context
  Tensor position;
  if (rule.is_bidirectional) {
    Tensor is_after = make(DType::kBool);
    Tensor wide = make(DType::kInt64);
    is_after.reset();
    Tensor product = make(DType::kInt64);
    wide.reset();
    out.index = make(DType::kInt64);  // 0 + product
    product.reset();
    position = make(DType::kInt64);  // abs
  } else {
    Tensor zeros = make(DType::kInt64);
    const Tensor least = make(DType::kInt64);
    zeros.reset();
    position = make(DType::kInt64);  // -least
  }
  const Tensor is_small = make(DType::kBool);
  Tensor large = make(DType::kFloat32);
  for (int i = 0; i < 4; ++i) large = make(DType::kFloat32);  // / exact, log, / log, * rest
  large = make(DType::kInt64);
  large = make(DType::kInt64);  // exact + large
  {
    const Tensor most = make(DType::kInt64);
    large = make(DType::kInt64);  // min
  }
  const Tensor chosen = make(DType::kInt64);
  if (!out.index.defined()) out.index = make(DType::kInt64);  // 0 + chosen; else in place
  if (context.computes()) FillIds(out.index, AllBuckets(rule));
  return out;
}

}  // namespace ashlar::kernels
