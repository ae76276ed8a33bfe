#include "analyzer/whatif/risk.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"

namespace ashlar::whatif {
namespace {

std::vector<RequestSize> Counted(std::vector<RequestSize> sizes) {
  std::sort(sizes.begin(), sizes.end(), [](const RequestSize& a, const RequestSize& b) { return a.bytes < b.bytes; });
  std::vector<RequestSize> out;
  for (const RequestSize& size : sizes) {
    if (!out.empty() && out.back().bytes == size.bytes) {
      out.back().count += size.count;
    } else {
      out.push_back(size);
    }
  }
  return out;
}

}  // namespace

std::vector<RequestSize> SizesOf(const trace::RequestTrace& requests) {
  std::vector<RequestSize> out;
  for (const trace::Op& request : requests.requests) {
    if (request.kind != trace::OpKind::kAlloc || request.bytes == 0) continue;
    if (request.bytes <= policy::kMaxRequestBytes) out.push_back({request.bytes, 1});
  }
  return Counted(std::move(out));
}

std::vector<RequestSize> MergedSizes(const std::vector<RequestSize>& a, const std::vector<RequestSize>& b) {
  std::vector<RequestSize> out = a;
  out.insert(out.end(), b.begin(), b.end());
  return Counted(std::move(out));
}

namespace {

// From here on a split limit meets "sizes that occur often": a tenth of the large requests, and ten of them.
constexpr double kOftenShare = 0.1;
constexpr std::uint64_t kOftenCount = 10;
constexpr std::uint64_t kMuchRoundingBytes = 32 * kMiB;
constexpr std::uint64_t kManyRetries = 10;

bool HasSplitLimit(const policy::Options& options) { return options.max_split_size_bytes != policy::kUnlimited; }

bool HasMemoryLimit(const policy::Options& options, std::optional<double> memory_fraction) {
  const std::optional<double> fraction =
      memory_fraction.has_value() ? memory_fraction : options.per_process_memory_fraction;
  if (!fraction.has_value()) return false;
  // 2.10 and later take 1 as no limit.
  const bool is_late = policy::IsLate(options.compat);
  return !is_late || *fraction < 1;
}

void AddSplitRisks(const policy::Options& options, const std::vector<RequestSize>& sizes, std::vector<Risk>& out) {
  if (!HasSplitLimit(options)) return;
  const std::uint64_t limit = options.max_split_size_bytes;
  if (options.expandable_segments) {
    out.push_back({"split_limit_with_expandable", RiskLevel::kNotRecommended,
                   "max_split_size_mb applies to free ranges inside an expandable segment as well: they can no longer "
                   "be reused and reserved memory grows without end",
                   "pytorch issue 123548, pull request 193400"});
  }
  if (limit == options.large_segment_bytes) {
    out.push_back(
        {"split_limit_equals_large_segment", RiskLevel::kNotRecommended,
         absl::StrCat("at ", FormatBytes(limit),
                      ", the size of a large segment, a wholly free large segment is refused to every request "
                      "of 1 to 10 MiB: each needs a new one"),
         "ashlar guide policy"});
  }
  std::uint64_t large = 0;
  std::uint64_t beyond = 0;
  for (const RequestSize& size : sizes) {
    const std::uint64_t rounded = policy::RoundedBytes(size.bytes, options);
    if (policy::IsSmall(rounded)) continue;
    large += size.count;
    if (rounded >= limit) beyond += size.count;
  }
  if (beyond < kOftenCount || static_cast<double>(beyond) < kOftenShare * static_cast<double>(large)) return;
  out.push_back(
      {"split_limit_below_frequent_sizes", RiskLevel::kCaution,
       absl::StrCat(FormatCount(beyond), " of ", FormatCount(large), " large requests are of ", FormatBytes(limit),
                    " or more: they share no segment with smaller ones and are reused "
                    "only by about their own size, so more of them go to the driver"),
       "mlcommons/algorithmic-efficiency pull request 522: fits, at half the speed"});
}

void AddRoundingRisk(const policy::Options& options, const std::vector<RequestSize>& sizes, std::vector<Risk>& out) {
  std::uint64_t most = 0;
  std::uint64_t of = 0;
  for (const RequestSize& size : sizes) {
    const std::uint64_t rounded = policy::RoundedBytes(size.bytes, options);
    const std::uint64_t rounding = rounded - std::min(size.bytes, rounded);
    if (rounding <= most) continue;
    most = rounding;
    of = size.bytes;
  }
  if (most < kMuchRoundingBytes) return;
  out.push_back({"rounding_of_big_tensors", RiskLevel::kCaution,
                 absl::StrFormat("a request of %s takes %s more than it asks", FormatBytes(of), FormatBytes(most)),
                 "ashlar guide policy"});
}

}  // namespace

absl::string_view RiskLevelName(RiskLevel level) {
  switch (level) {
    case RiskLevel::kNone:
      return "none";
    case RiskLevel::kNote:
      return "note";
    case RiskLevel::kCaution:
      return "caution";
    case RiskLevel::kNotRecommended:
      return "not_recommended";
  }
  return "none";
}

std::vector<Risk> RisksOf(const policy::Options& options, const std::vector<RequestSize>& sizes,
                          std::optional<double> memory_fraction) {
  std::vector<Risk> out;
  AddSplitRisks(options, sizes, out);
  if (options.garbage_collection_threshold > 0 && !HasMemoryLimit(options, memory_fraction)) {
    out.push_back({"threshold_without_fraction", RiskLevel::kNotRecommended,
                   "garbage_collection_threshold does nothing unless the process has a memory fraction "
                   "(torch.cuda.set_per_process_memory_fraction)",
                   "ashlar guide policy"});
  }
  AddRoundingRisk(options, sizes, out);
  if (options.large_segment_bytes != policy::kDefaultLargeSegmentBytes) {
    out.push_back(
        {"recent_key", RiskLevel::kNote,
         "large_segment_size_mb is known to PyTorch from about 2.10 on; earlier versions refuse to start with "
         "it",
         "ashlar guide policy"});
  }
  if (options.expandable_segments) {
    out.push_back({"expandable_is_not_everywhere", RiskLevel::kNote,
                   "expandable_segments needs virtual memory management of the driver: without it PyTorch warns and "
                   "goes on as before, and libraries that register or share this memory may refuse it",
                   "pytorch issues 130330, 165419, 147851; nccl issue 2332"});
  }
  return out;
}

std::optional<Risk> RetryRisk(std::uint64_t retries, std::uint64_t baseline_retries) {
  if (retries < baseline_retries + kManyRetries) return std::nullopt;
  return Risk{"cache_returned_often", RiskLevel::kCaution,
              absl::StrCat(FormatCount(retries),
                           " times the whole cache goes back to the device to make room, and each "
                           "time the device is waited for"),
              "pytorch issue 104509: 46 retries, 5.3 to 7.3 s an iteration"};
}

RiskLevel WorstLevel(const std::vector<Risk>& risks) {
  RiskLevel worst = RiskLevel::kNone;
  for (const Risk& risk : risks) worst = std::max(worst, risk.level);
  return worst;
}

}  // namespace ashlar::whatif
