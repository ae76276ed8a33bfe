// Names the risks of a setting, whatever its figures in one replay: combinations known to go wrong, settings without
// effect, settings whose price a replay of one trace shows only in part. Each risk names its source.
//
//   for (const Risk& risk : RisksOf(options, sizes, memory_fraction)) std::cout << risk.sentence;
#ifndef ASHLAR_ANALYZER_WHATIF_RISK_H_
#define ASHLAR_ANALYZER_WHATIF_RISK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/policy/options.h"
#include "allocator/trace/request.h"

namespace ashlar::whatif {

// The sizes a program asks for, each with how often: what decides which settings can matter to it.
//
//   for (const RequestSize& size : SizesOf(requests)) ... // ascending
struct RequestSize {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

// Ascending; requests of no bytes and those no device could hold are left out.
std::vector<RequestSize> SizesOf(const trace::RequestTrace& requests);

// The sizes of both lists, counts added.
std::vector<RequestSize> MergedSizes(const std::vector<RequestSize>& a, const std::vector<RequestSize>& b);

enum class RiskLevel : std::uint8_t {
  kNone,
  kNote,            // worth knowing; does not count in a ranking
  kCaution,         // costs something: ranks after an equal setting without it
  kNotRecommended,  // never advised, shown when asked for
};

absl::string_view RiskLevelName(RiskLevel level);  // "none", "note", "caution", "not_recommended"

struct Risk {
  std::string name;  // stable key: "split_limit_with_expandable"
  RiskLevel level = RiskLevel::kNote;
  std::string sentence;
  std::string source;  // a public thread, or the rule of docs/internals/policy.md
};

// `sizes` of the traces the setting is for.
std::vector<Risk> RisksOf(const policy::Options& options, const std::vector<RequestSize>& sizes,
                          std::optional<double> memory_fraction);

// A setting under which `retries` times the cache had to go back to the device before a request succeeded or failed,
// against `baseline_retries` under the recorded settings; nullopt where that is no more to speak of.
std::optional<Risk> RetryRisk(std::uint64_t retries, std::uint64_t baseline_retries);

RiskLevel WorstLevel(const std::vector<Risk>& risks);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_RISK_H_
