// The answer of `ashlar check`: a trace compared with limits, one verdict for each limit and device
// (docs/guide/check.md). A limit that the trace cannot answer does not hold: it says what is not in the trace.
//
//   const CheckAnswer answer = CheckTrace("train.pickle", run, {.max_ooms = 0});
//   return answer.Passed();
#ifndef ASHLAR_COMMANDS_CHECK_CHECK_H_
#define ASHLAR_COMMANDS_CHECK_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands/shared/traced_run.h"

namespace ashlar::answers {

// How far the peak of reserved memory may lie above that of an earlier run.
struct CheckGrowth {
  std::uint64_t bytes = 0;
  std::optional<double> share = {};  // of the earlier peak, in place of bytes: 0.03 for 3 %
  std::vector<std::pair<std::optional<int>, std::uint64_t>> peaks;  // of the earlier run: device, bytes

  // The most that a peak may be; nullopt: the earlier run tells no peak of the device.
  std::optional<std::uint64_t> LimitOf(std::optional<int> device) const;
};

struct CheckLimits {
  std::optional<std::uint64_t> max_reserved_bytes = {};
  std::optional<double> min_utilisation = {};  // peak allocated / peak reserved
  std::optional<std::uint64_t> max_retries = {};
  std::optional<std::uint64_t> max_leak_bytes_per_step = {};  // of all stacks together, the median step's
  std::optional<std::uint64_t> max_ooms = {};
  std::optional<CheckGrowth> max_growth = {};

  bool IsEmpty() const {
    return !max_reserved_bytes && !min_utilisation && !max_retries && !max_leak_bytes_per_step && !max_ooms &&
           !max_growth;
  }
};

enum class CheckVerdict : std::uint8_t { kHolds, kBroken, kNotInTrace };
enum class CheckUnit : std::uint8_t { kBytes, kShare, kCount };

struct CheckRow {
  std::string name;  // "max-reserved", as the flag
  CheckUnit unit = CheckUnit::kBytes;
  double limit = 0;                     // exact up to 2^53
  std::optional<double> measured = {};  // nullopt: not in this trace
  CheckVerdict verdict = CheckVerdict::kNotInTrace;
  std::string reason = {};         // where it does not hold: one sentence
  std::optional<int> device = {};  // where several are judged
};

struct CheckAnswer {
  std::string input;
  std::string source;
  std::vector<CheckRow> rows;

  std::uint64_t CountOf(CheckVerdict verdict) const;
  bool Passed() const { return CountOf(CheckVerdict::kHolds) == rows.size(); }
};

CheckAnswer CheckTrace(std::string input, const TracedRun& run, const CheckLimits& limits);
// Every device is held to the limits by itself.
CheckAnswer CheckDevices(std::string input, const std::vector<TracedRun>& runs, const CheckLimits& limits);

}  // namespace ashlar::answers

namespace ashlar::report {

// Prints the answer of `ashlar check` (docs/guide/check.md), as text, Markdown, JSON and JUnit's XML.
//
//   std::cout << ToText(CheckTrace("train.pickle", run, {.max_ooms = 0}));

std::string ToText(const answers::CheckAnswer& report);
std::string ToMarkdown(const answers::CheckAnswer& report);
std::string ToJson(const answers::CheckAnswer& report);
std::string CheckSchema();  // docs/schemas/check.schema.json
// JUnit's XML, as CI systems read it: one test case a limit. Well-formed whatever the names hold.
std::string ToJUnit(const answers::CheckAnswer& report);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_CHECK_CHECK_H_
