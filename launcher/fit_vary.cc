#include "launcher/fit_vary.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "commands/fit/largest.h"

namespace ashlar::cli {
namespace {

using answers::FitRow;
using answers::FitValues;
using answers::FitVerdict;
using answers::LargestSearch;
using Clock = std::chrono::steady_clock;
using Asked = FitRuns::Asked;

constexpr char kPlace[] = "{}";
constexpr std::uint64_t kMostValue = std::uint64_t{1} << 40;
constexpr std::size_t kMostValues = 1000;

absl::Status NotValues(const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat("--vary: '", text, "' is no ARGUMENT:VALUES, such as --batch-size:1..256 or --batch-size:1,2,4"));
}

bool ReadValue(absl::string_view text, std::uint64_t& out) { return absl::SimpleAtoi(text, &out) && out <= kMostValue; }

// "--n=8" and "n=8" carry their value; "--n" has it in the next word.
bool CarriesValue(const std::string& word, const Vary& vary) { return absl::StartsWith(word, vary.argument + "="); }

absl::StatusOr<HollowMachine> WithDevices(MachineFlags flags, std::uint64_t count) {
  flags.devices = count;
  return ReadMachine(flags);
}

class ValueRuns {
 public:
  ValueRuns(const VaryLimits& limits, FitRuns& runs, std::function<Asked(std::uint64_t)> asked)
      : limits_(limits), runs_(runs), asked_(std::move(asked)) {}

  // All of them, as many as the time allows.
  void RunAll(const std::vector<std::uint64_t>& values) {
    for (std::size_t i = 0; i < values.size(); i += runs_.at_once()) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i);
      const auto end = values.begin() + static_cast<std::ptrdiff_t>(std::min(values.size(), i + runs_.at_once()));
      if (!Run({begin, end})) return;
    }
  }

  // Of the fewest cards it is the largest number that does not fit.
  void Find(const LargestSearch::Range& range, bool of_what_fits = true) {
    LargestSearch search(range);
    for (auto next = search.Next(runs_.at_once()); !next.empty(); next = search.Next(runs_.at_once())) {
      if (!Run(next)) return;
      for (const std::uint64_t value : next) search.Tell(value, Fits(value) == of_what_fits);
    }
  }

  FitValues Told(std::string name, FitValues::Goal goal = FitValues::Goal::kLargest) {
    const bool is_fewest = goal == FitValues::Goal::kFewest;
    out_.name = std::move(name);
    out_.goal = goal;
    std::sort(out_.values.begin(), out_.values.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
    if (is_fewest) std::reverse(out_.values.begin(), out_.values.end());
    for (const FitValues::Value& one : out_.values) {
      if (one.row.verdict == FitVerdict::kFits) {
        out_.found = one.value;
        out_.next.reset();
      } else if (out_.found.has_value() && !out_.next.has_value()) {
        out_.next = one.value;
      }
    }
    if (is_fewest) std::reverse(out_.values.begin(), out_.values.end());
    return std::move(out_);
  }

 private:
  bool Run(const std::vector<std::uint64_t>& values) {
    const double left = limits_.seconds - std::chrono::duration<double>(Clock::now() - began_).count();
    if (left <= 0) {
      out_.is_over = true;
      return false;
    }
    std::vector<Asked> asked;
    for (const std::uint64_t value : values) asked.push_back(asked_(value));
    std::vector<FitRow> rows = runs_.Run(asked, {.most_seconds = std::min(limits_.most_seconds, std::max(left, 1.0))});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].changes.clear();  // the value says it
      out_.values.push_back({values[i], std::move(rows[i])});
    }
    return true;
  }

  bool Fits(std::uint64_t value) const {
    return std::any_of(out_.values.begin(), out_.values.end(), [&](const FitValues::Value& one) {
      return one.value == value && one.row.verdict == FitVerdict::kFits;
    });
  }

  const VaryLimits limits_;
  FitRuns& runs_;
  const std::function<Asked(std::uint64_t)> asked_;
  const Clock::time_point began_ = Clock::now();
  FitValues out_;
};

}  // namespace

absl::StatusOr<Vary> ReadVary(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return NotValues(text);
  Vary out;
  out.argument = text.substr(0, colon);
  absl::string_view values = absl::string_view(text).substr(colon + 1);
  if (const std::vector<std::string> ends = absl::StrSplit(values, absl::MaxSplits("..", 1)); ends.size() == 2) {
    if (!ReadValue(ends[0], out.least) || !ReadValue(ends[1], out.most) || out.least > out.most) return NotValues(text);
    return out;
  }
  for (const absl::string_view value : absl::StrSplit(values, ',')) {
    if (!ReadValue(value, out.values.emplace_back())) return NotValues(text);
  }
  if (out.values.size() > kMostValues) {
    return absl::InvalidArgumentError(
        absl::StrCat("--vary: more than ", kMostValues, " values: give a range, as 1..256"));
  }
  std::sort(out.values.begin(), out.values.end());
  out.values.erase(std::unique(out.values.begin(), out.values.end()), out.values.end());
  return out;
}

std::vector<std::string> ProgramWith(const std::vector<std::string>& program, const Vary& vary, std::uint64_t value) {
  std::vector<std::string> out = program;
  const std::string text = absl::StrCat(value);
  if (vary.argument == kPlace) {
    for (std::string& word : out) word = absl::StrReplaceAll(word, {{kPlace, text}});
    return out;
  }
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (CarriesValue(out[i], vary)) {
      out[i] = absl::StrCat(vary.argument, "=", text);
      return out;
    }
    if (out[i] == vary.argument && i + 1 < out.size()) {
      out[i + 1] = text;
      return out;
    }
  }
  if (absl::StartsWith(vary.argument, "-")) {
    out.push_back(vary.argument);
    out.push_back(text);
  } else {
    out.push_back(absl::StrCat(vary.argument, "=", text));  // as Hydra's are
  }
  return out;
}

std::vector<std::string> FirstProgram(const std::vector<std::string>& program, const Vary& vary) {
  if (vary.argument != kPlace) return program;
  return ProgramWith(program, vary, vary.values.empty() ? vary.least : vary.values.front());
}

std::optional<std::uint64_t> ValueIn(const std::vector<std::string>& program, const Vary& vary) {
  std::uint64_t value = 0;
  for (std::size_t i = 1; i < program.size(); ++i) {
    absl::string_view text;
    if (CarriesValue(program[i], vary)) {
      text = absl::string_view(program[i]).substr(vary.argument.size() + 1);
    } else if (program[i] == vary.argument && i + 1 < program.size()) {
      text = program[i + 1];
    }
    if (!text.empty() && ReadValue(text, value)) return value;
  }
  return std::nullopt;
}

absl::StatusOr<FitValues> RunValues(const Vary& vary, const VaryAsked& asked, const VaryLimits& limits, FitRuns& runs) {
  const bool is_fewest = asked.goal == FitValues::Goal::kFewest;
  if (const std::uint64_t most = vary.values.empty() ? vary.most : vary.values.back(); is_fewest) {
    const absl::StatusOr<HollowMachine> machine = WithDevices(asked.machine, most);
    if (!machine.ok()) return machine.status();
  }
  ValueRuns all(limits, runs, [&](std::uint64_t value) {
    return Asked{.changes = asked.with,
                 .on_card = true,
                 .is_whole = true,
                 .program = ProgramWith(asked.program, vary, value),
                 .makes_other_steps = true,
                 .machine = is_fewest ? WithDevices(asked.machine, value)->text : ""};
  });
  if (vary.values.empty()) {
    const std::uint64_t start = std::clamp(ValueIn(asked.program, vary).value_or(vary.least), vary.least, vary.most);
    all.Find({.least = vary.least, .most = vary.most, .start = start}, !is_fewest);
  } else {
    all.RunAll(vary.values);
  }
  return all.Told(is_fewest ? "number of cards" : vary.argument == kPlace ? "value" : vary.argument, asked.goal);
}

absl::StatusOr<FitValues> RunBatches(const FitFacts::Batch& batch, const std::vector<std::string>& with,
                                     const VaryLimits& limits, FitRuns& runs) {
  if (batch.size == 0) {
    return absl::UnavailableError(
        absl::StrCat("--goal largest-batch: ", batch.why_not.empty() ? "no batch is known" : batch.why_not,
                     "; --vary ARGUMENT:1..256 varies an argument of the program's own"));
  }
  ValueRuns all(limits, runs, [&](std::uint64_t value) {
    std::vector<std::string> changes = with;
    changes.insert(changes.begin(), absl::StrCat("batch-size=", value));
    return Asked{.changes = std::move(changes), .on_card = true, .is_whole = true, .makes_other_steps = true};
  });
  all.Find({.least = 1, .most = std::max(batch.samples, batch.size), .start = batch.size});
  FitValues out = all.Told("batch");
  out.where = batch.where;
  return out;
}

}  // namespace ashlar::cli
