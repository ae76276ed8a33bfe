#include "analyzer/estimate/lengths.h"

#include <algorithm>
#include <cmath>
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

}  // namespace ashlar::estimate
