#include "kernels/workloads/batches.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/nn/parameters.h"

namespace ashlar::kernels {
namespace {

constexpr std::int64_t kLongest = 1 << 20;

// The values of TokenIds, sequence by sequence.
std::vector<std::int64_t> Tokens(std::int64_t sequences, std::int64_t length, std::int64_t below, Rng& rng) {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(sequences * length));
  for (std::int64_t i = 0; i < sequences; ++i) {
    std::int64_t token = static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(below)));
    const std::int64_t stride = 1 + static_cast<std::int64_t>(rng.Below(3));
    for (std::int64_t s = 0; s < length; ++s, token = (token + stride) % below) out.push_back(token);
  }
  return out;
}

Tensor UploadInts(Context& context, Dims sizes, const std::vector<std::int64_t>& values) {
  Tensor out = Empty(context, std::move(sizes), DType::kInt64, Part::kBatch);
  FillIds(out, values);
  return out;
}

}  // namespace

absl::StatusOr<LengthSource> LengthSource::Parse(absl::string_view text, std::uint64_t seed) {
  absl::string_view rest = text;
  const bool is_skewed = absl::ConsumePrefix(&rest, "skewed:");
  const bool is_range = is_skewed || absl::ConsumePrefix(&rest, "uniform:");
  if (!is_range) absl::ConsumePrefix(&rest, "fixed:");
  const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(rest, absl::MaxSplits('-', 1));
  std::int64_t low = 0, high = 0;
  const bool is_read = is_range ? absl::SimpleAtoi(ends.first, &low) && absl::SimpleAtoi(ends.second, &high)
                                : absl::SimpleAtoi(rest, &low);
  if (!is_range) high = low;
  if (!is_read || low < 1 || high < low || high > kLongest) {
    return absl::InvalidArgumentError(
        absl::StrCat("lengths '", text, "' are none of 512, uniform:16-512, skewed:16-512 (1 to ", kLongest, ")"));
  }
  return LengthSource(low, high, is_skewed, seed);
}

absl::Status LengthSource::CheckFits(std::int64_t positions) const {
  if (high_ <= positions) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--lengths up to ", high_, ": the model has ", positions,
                                                 " positions: give --lengths ", positions, " or less"));
}

std::int64_t LengthSource::Next() {
  if (low_ == high_) return low_;
  if (!is_skewed_) return static_cast<std::int64_t>(rng_.Between(low_, high_ + 1));
  const double ratio = static_cast<double>(high_) / static_cast<double>(low_);
  return std::min(high_, static_cast<std::int64_t>(static_cast<double>(low_) * std::pow(ratio, rng_.Unit())));
}

std::int64_t LengthSource::Longest(std::int64_t batch) {
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < batch; ++i) longest = std::max(longest, Next());
  return longest;
}

Tensor TokenIds(Context& context, Dims sizes, std::int64_t below, Rng& rng) {
  const std::int64_t length = sizes.back();
  std::vector<std::int64_t> values;
  if (context.computes()) values = Tokens(ops::ElementCount(sizes) / length, length, below, rng);
  return UploadInts(context, std::move(sizes), values);
}

LabelledBatch Labelled(Context& context, std::int64_t batch, std::int64_t length, std::int64_t below,
                       std::int64_t classes, Rng& rng) {
  std::vector<std::int64_t> values, labels;
  if (context.computes()) {
    values = Tokens(batch, length, below, rng);
    for (std::int64_t i = 0; i < batch; ++i) labels.push_back(values[static_cast<std::size_t>(i * length)] % classes);
  }
  Tensor ids = UploadInts(context, {batch, length}, values);
  return {std::move(ids), UploadInts(context, {batch}, labels)};
}

}  // namespace ashlar::kernels
