#include "estimator/batching.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/rng.h"

namespace ashlar::estimate {
namespace {

constexpr std::int64_t kLongest = 1 << 20;
constexpr std::int64_t kDefaultSamples = 1000;
constexpr std::int64_t kMostSamples = 10'000'000;

struct Normal {
  double mean = -1;
  double deviation = -1;
  std::int64_t least = 1;
  std::int64_t most = 0;
};

absl::Status Wrong(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", why, "; such as mean:80,sd:40,max:512"));
}

bool ReadLength(absl::string_view text, std::int64_t& out) {
  return absl::SimpleAtoi(text, &out) && out >= 1 && out <= kLongest;
}

absl::StatusOr<Normal> ReadNormal(absl::string_view text) {
  Normal out;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(part, absl::MaxSplits(':', 1));
    const auto& [key, value] = pair;
    bool is_read = false;
    if (key == "mean" || key == "sd") {
      double& number = key == "mean" ? out.mean : out.deviation;
      is_read = absl::SimpleAtod(value, &number) && number >= 0 && number <= static_cast<double>(kLongest);
    } else if (key == "min" || key == "max") {
      is_read = ReadLength(value, key == "min" ? out.least : out.most);
    } else {
      return Wrong(text, absl::StrCat("'", key, "' is none of mean, sd, min, max"));
    }
    if (!is_read) return Wrong(text, absl::StrCat("'", value, "' is no ", key, " up to ", kLongest));
  }
  if (out.mean < 0 || out.deviation < 0 || out.most == 0) return Wrong(text, "mean, sd and max are needed");
  if (out.least > out.most) return Wrong(text, "min is above max");
  return out;
}

// One draw of the standard normal distribution: Marsaglia's polar method, without its second number.
double StandardNormal(Rng& rng) {
  while (true) {
    const double u = 2 * rng.Unit() - 1, v = 2 * rng.Unit() - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
  }
}

absl::StatusOr<std::int64_t> CountOf(const LengthOptions& options, std::int64_t otherwise) {
  const std::int64_t count = options.samples.value_or(otherwise);
  if (count >= 1 && count <= kMostSamples) return count;
  return absl::OutOfRangeError(absl::StrCat(count, " is not from 1 to ", kMostSamples));
}

}  // namespace

void Lengths::CutTo(std::int64_t most) {
  longest = std::min(longest, most);
  for (std::int64_t& sample : samples) {
    cut += sample > most ? 1 : 0;
    sample = std::min(sample, most);
  }
}

absl::StatusOr<Lengths> NormalLengths(absl::string_view text, const LengthOptions& options) {
  const absl::StatusOr<Normal> normal = ReadNormal(text);
  if (!normal.ok()) return normal.status();
  const absl::StatusOr<std::int64_t> count = CountOf(options, kDefaultSamples);
  if (!count.ok()) return count.status();
  Lengths out{std::string(text), {}, normal->most};
  Rng rng(options.seed);
  for (std::int64_t i = 0; i < *count; ++i) {
    const double drawn = std::round(normal->mean + normal->deviation * StandardNormal(rng));
    out.samples.push_back(static_cast<std::int64_t>(
        std::clamp(drawn, static_cast<double>(normal->least), static_cast<double>(normal->most))));
  }
  return out;
}

absl::StatusOr<Lengths> ListedLengths(absl::string_view name, absl::string_view text, const LengthOptions& options) {
  std::vector<std::int64_t> list;
  std::size_t line_number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    const absl::string_view word = absl::StripAsciiWhitespace(line);
    if (word.empty() || word.front() == '#') continue;
    std::int64_t length = 0;
    if (!ReadLength(word, length)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line_number, ": '", word.substr(0, 40), "' is not a length from 1 to ", kLongest));
    }
    list.push_back(length);
  }
  if (list.empty()) return absl::InvalidArgumentError("there is no length in it: one a line");
  const absl::StatusOr<std::int64_t> count = CountOf(options, static_cast<std::int64_t>(list.size()));
  if (!count.ok()) return count.status();
  Lengths out{std::string(name), {}, *std::max_element(list.begin(), list.end())};
  if (!options.samples.has_value()) {
    out.samples = std::move(list);
    return out;
  }
  Rng rng(options.seed);
  for (std::int64_t i = 0; i < *count; ++i) out.samples.push_back(list[rng.Below(list.size())]);
  return out;
}

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
