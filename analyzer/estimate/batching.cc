#include "analyzer/estimate/batching.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"

namespace ashlar::estimate {
namespace {

constexpr Batching kAll[] = {Batching::kFixed, Batching::kDynamic, Batching::kUniform};
constexpr std::int64_t kMostBatchesSorted = 50;

void Shuffle(std::vector<std::int64_t>& samples, std::uint64_t shuffle) {
  // A generator's first number sets the next one's state: neighbouring shuffles have nothing in common.
  Rng rng(Rng(shuffle).Next());
  for (std::size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[rng.Below(i)]);
}

void GroupByLength(std::vector<std::int64_t>& samples, std::int64_t batch) {
  const auto count = static_cast<std::int64_t>(samples.size());
  const std::int64_t together = batch * std::max<std::int64_t>(1, std::min(count / (batch * 4), kMostBatchesSorted));
  for (std::int64_t begin = 0; begin < count; begin += together) {
    std::sort(samples.begin() + begin, samples.begin() + std::min(begin + together, count), std::greater<>());
  }
  std::swap(samples.front(), *std::max_element(samples.begin(), samples.end()));
}

}  // namespace

absl::string_view BatchingName(Batching batching) {
  switch (batching) {
    case Batching::kFixed:
      return "fixed";
    case Batching::kDynamic:
      return "dynamic";
    case Batching::kUniform:
      return "uniform";
  }
  return "fixed";
}

absl::StatusOr<Batching> ParseBatching(absl::string_view name) {
  for (const Batching batching : kAll) {
    if (name == BatchingName(batching)) return batching;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is none of fixed, dynamic, uniform"));
}

std::vector<BatchShape> EpochOf(const Lengths& lengths, Batching batching, std::int64_t batch, std::uint64_t shuffle) {
  std::vector<std::int64_t> samples = lengths.samples;
  Shuffle(samples, shuffle);
  if (batching == Batching::kUniform && !samples.empty()) GroupByLength(samples, batch);
  std::vector<BatchShape> out;
  const auto count = static_cast<std::int64_t>(samples.size());
  for (std::int64_t begin = 0; begin < count; begin += batch) {
    const std::int64_t end = std::min(begin + batch, count);
    const std::int64_t longest = *std::max_element(samples.begin() + begin, samples.begin() + end);
    BatchShape shape{end - begin, batching == Batching::kFixed ? lengths.longest : longest};
    shape.is_padded = *std::min_element(samples.begin() + begin, samples.begin() + end) < shape.tokens;
    shape.real_tokens = std::accumulate(samples.begin() + begin, samples.begin() + end, std::int64_t{0});
    out.push_back(shape);
  }
  return out;
}

}  // namespace ashlar::estimate
