#include "allocator/policy/torch_keys.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "allocator/policy/conf_split.h"

namespace ashlar::policy {
namespace {

constexpr std::uint64_t kMostRegisterThreads = 128;

Width WidthOf(Compat compat) { return IsLate(compat) ? Width::kUnsignedLongLong : Width::kInt; }

// A number's text may be odd; whoever wrote it is told what it means.
void NoteReadAs(const Setting& setting, const std::string& read, Options& options) {
  options.notes.push_back(
      absl::StrCat(setting.key, ": '", setting.value, "' is read as ", read, ", as PyTorch reads it"));
}

// Why it is none; empty where it is one.
absl::string_view ReadWhole(const Setting& setting, Width width, Options& options, std::uint64_t& value) {
  const absl::string_view problem = TorchWholeProblem(setting.value, width, value);
  if (problem.empty() && setting.value != absl::StrCat(value)) NoteReadAs(setting, absl::StrCat(value), options);
  return problem;
}

// A limit of whole MiB; `low_from` names the key that it comes from, if one does.
struct LowLimit {
  std::uint64_t mb = 0;
  bool is_inclusive = false;
  absl::string_view low_from = "";
};

absl::StatusOr<std::uint64_t> ReadMebibytes(const Setting& setting, const LowLimit& low, Options& options) {
  std::uint64_t value = 0;
  absl::string_view problem = ReadWhole(setting, WidthOf(options.compat), options, value);
  if (problem.empty() && (value < low.mb || (!low.is_inclusive && value == low.mb))) problem = kTooSmall;
  if (problem.empty()) return std::min(value, kUnlimited / kMiB) * kMiB;
  return BadValue(setting,
                  absl::StrCat("use a whole number of MiB ", low.is_inclusive ? ">= " : "> ", low.mb,
                               low.low_from.empty() ? "" : ", ", low.low_from),
                  problem);
}

LowLimit LowestSplit(const Options& options) {
  if (!IsLate(options.compat)) return {kDefaultLargeSegmentBytes / kMiB, false};
  return {options.large_segment_bytes / kMiB, true, "the large_segment_size_mb in force"};
}

// A range within 0 and 1.
struct TorchShare {
  bool has_ends = false;
  absl::string_view allowed;
};

absl::StatusOr<double> ReadShareOf(const Setting& setting, const TorchShare& share, Options& options) {
  double value = 0;
  absl::string_view problem = TorchNumberProblem(setting.value, value);
  if (problem.empty() && std::isnan(value)) problem = kNoNumber;
  if (problem.empty() && (value < 0 || (value == 0 && !share.has_ends))) problem = kTooSmall;
  if (problem.empty() && (value > 1 || (value == 1 && !share.has_ends))) problem = kTooLarge;
  if (!problem.empty()) return BadValue(setting, share.allowed, problem);
  double whole = 0;
  if (!absl::SimpleAtod(setting.value, &whole)) NoteReadAs(setting, absl::StrCat(value), options);
  return value;
}

constexpr absl::string_view kListAllowed =
    "use [size:divisions,...,>:divisions], sizes in MiB and powers of two, divisions powers of two or 0";

absl::Status BadPart(const Setting& setting, absl::string_view part, absl::string_view problem) {
  return BadValue(setting, kListAllowed, absl::StrCat("is not allowed, '", part, "' ", problem));
}

// One `size:divisions` after the other.
class DivisionsReader {
 public:
  DivisionsReader(const Setting& setting, Options& options) : setting_(setting), options_(options) {}

  absl::Status Take(const std::string& size, const std::string& divisions) {
    std::uint64_t value = 0;
    const absl::string_view problem = Read(divisions, WidthOf(options_.compat), value);
    if (!problem.empty()) return BadPart(setting_, divisions, problem);
    if (value != 0 && !std::has_single_bit(value)) return BadPart(setting_, divisions, kNoPower);
    if (size == ">") {
      TakeRest(value);
      return absl::OkStatus();
    }
    std::uint64_t boundary = 0;
    const absl::string_view wrong = Read(size, Width::kUnsignedLongLong, boundary);
    if (!wrong.empty()) return BadPart(setting_, size, wrong);
    if (!std::has_single_bit(boundary)) return BadPart(setting_, size, kNoPower);
    TakeOne(static_cast<std::size_t>(std::countr_zero(boundary)), value);
    return absl::OkStatus();
  }

 private:
  absl::string_view Read(const std::string& text, Width width, std::uint64_t& value) {
    return ReadWhole({setting_.key, text}, width, options_, value);
  }

  // Until 2.6 the last named interval takes the value too; see the upstream defects in docs/internals/policy.md.
  void TakeRest(std::uint64_t value) {
    auto& all = options_.roundup_power2_divisions;
    const std::size_t from = std::min(IsLate(options_.compat) ? last_ + 1 : last_, all.size());
    std::fill(all.begin() + static_cast<std::ptrdiff_t>(from), all.end(), value);
  }

  // The first that is named fills those below.
  void TakeOne(std::size_t interval, std::uint64_t value) {
    auto& all = options_.roundup_power2_divisions;
    last_ = std::min(interval, all.size() - 1);
    if (is_first_) std::fill(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(last_), value);
    is_first_ = false;
    all[last_] = value;
  }

  const Setting& setting_;
  Options& options_;
  std::size_t last_ = 0;
  bool is_first_ = true;
};

// `[k:v,...,>:v]`; see Options::roundup_power2_divisions.
absl::Status ReadDivisionsList(const Setting& setting, Options& options) {
  const Grammar grammar = GrammarOf(options.compat);
  const auto is_sign = [grammar](const std::string& token, absl::string_view sign) {
    return token == sign || grammar == Grammar::kLater;
  };
  absl::string_view list = setting.value;
  if (!absl::ConsumePrefix(&list, "[") || !absl::ConsumeSuffix(&list, "]")) return BadValue(setting, kListAllowed);
  const std::vector<std::string> tokens = ConfTokens(list, grammar);
  DivisionsReader reader(setting, options);
  for (std::size_t i = 0; i < tokens.size(); i += 4) {
    if (i + 2 >= tokens.size() || !is_sign(tokens[i + 1], ":"))
      return BadPart(setting, tokens[i], "is no size:divisions");
    if (absl::Status status = reader.Take(tokens[i], tokens[i + 2]); !status.ok()) return status;
    if (i + 3 < tokens.size() && !is_sign(tokens[i + 3], ",")) return BadPart(setting, tokens[i + 3], "is no comma");
  }
  return absl::OkStatus();
}

absl::Status NoteNoDecision(const Setting& setting, Options& options) {
  options.notes.push_back(absl::StrCat(setting.key, ": accepted, changes no decision here"));
  return absl::OkStatus();
}

}  // namespace

absl::Status BadValue(const Setting& setting, absl::string_view allowed, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(setting.key, ": '", setting.value, "' ", problem, ": ", allowed));
}

absl::StatusOr<bool> ReadBool(const Setting& setting) {
  if (setting.value == "True") return true;
  if (setting.value == "False") return false;
  return BadValue(setting, "use True or False");
}

Grammar GrammarOf(Compat compat) { return IsLate(compat) ? Grammar::kLater : Grammar::kUpTo26; }

absl::Status ReadMaxSplit(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, LowestSplit(options), options);
  if (bytes.ok()) options.max_split_size_bytes = *bytes;
  return bytes.status();
}

absl::Status ReadNonSplitRounding(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, LowestSplit(options), options);
  if (bytes.ok()) options.max_non_split_rounding_bytes = *bytes;
  return bytes.status();
}

absl::Status ReadLargeSegment(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, {.mb = 10}, options);
  if (!bytes.ok()) return bytes.status();
  options.large_segment_bytes = *bytes;
  options.max_non_split_rounding_bytes = *bytes;
  return absl::OkStatus();
}

absl::Status ReadBypass(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, {.is_inclusive = true}, options);
  if (bytes.ok()) options.roundup_bypass_threshold_bytes = *bytes;
  return bytes.status();
}

absl::Status ReadDivisions(const Setting& setting, Options& options) {
  if (absl::StartsWith(setting.value, "[")) {
    if (!RulesOf(options.compat).has_division_lists)
      return BadValue(setting, absl::StrCat(CompatName(options.compat), " knows one power of two for all sizes"));
    return ReadDivisionsList(setting, options);
  }
  std::uint64_t value = 0;
  absl::string_view problem = ReadWhole(setting, WidthOf(options.compat), options, value);
  if (problem.empty() && !std::has_single_bit(value)) problem = kNoPower;
  if (!problem.empty()) return BadValue(setting, "use a power of two", problem);
  options.roundup_power2_divisions.fill(value);
  return absl::OkStatus();
}

absl::Status ReadThreshold(const Setting& setting, Options& options) {
  const absl::StatusOr<double> value =
      ReadShareOf(setting, {.allowed = "use a number between 0 and 1, both exclusive"}, options);
  if (value.ok()) options.garbage_collection_threshold = *value;
  return value.status();
}

absl::Status ReadFraction(const Setting& setting, Options& options) {
  const absl::StatusOr<double> value =
      ReadShareOf(setting, {.has_ends = true, .allowed = "use a number from 0 to 1"}, options);
  if (value.ok()) options.per_process_memory_fraction = *value;
  return value.status();
}

// A fraction of the device's memory or a number of GiB ("64g"); what cannot be read is ignored, as upstream does.
absl::Status ReadReserve(const Setting& setting, Options& options) {
  if (absl::StartsWith(setting.value, "[")) {
    return BadValue(setting, "use a share of the device's memory, or GiB as 64g");
  }
  absl::string_view number = setting.value;
  const bool is_gib = absl::ConsumeSuffix(&number, "G") || absl::ConsumeSuffix(&number, "g");
  double value = 0;
  const bool is_number = absl::SimpleAtod(number, &value) && !std::isnan(value);
  if (!is_number || !std::isfinite(value) || value <= 0) {
    const absl::string_view problem = !is_number ? kNoNumber : value <= 0 ? kTooSmall : kTooLarge;
    options.notes.push_back(absl::StrCat(setting.key, ": '", setting.value, "' ", problem, " and is ignored"));
    return absl::OkStatus();
  }
  options.expandable_reserve = {};
  if (is_gib) {
    options.expandable_reserve.bytes = static_cast<std::uint64_t>(std::min(value * kGiB, 0x1p62));
  } else {
    options.expandable_reserve.fraction_of_total = value;
  }
  return absl::OkStatus();
}

absl::Status ReadBackend(const Setting& setting, Options& options) {
  if (setting.value == "native") return absl::OkStatus();
  if (setting.value == "cudaMallocAsync" && RulesOf(options.compat).has_expandable_segments) {
    return BadValue(setting, "only 'native' has a block-splitting policy that can be replayed");
  }
  return BadValue(setting, "use native");
}

absl::Status CheckFlag(const Setting& setting, Options& options) {
  const absl::StatusOr<bool> value = ReadBool(setting);
  return value.ok() ? NoteNoDecision(setting, options) : value.status();
}

absl::Status CheckRegisterThreads(const Setting& setting, Options& options) {
  std::uint64_t value = 0;
  absl::string_view problem = ReadWhole(setting, WidthOf(options.compat), options, value);
  if (problem.empty() && !std::has_single_bit(value)) problem = kNoPower;
  if (problem.empty() && value > kMostRegisterThreads) problem = kTooLarge;
  if (problem.empty()) return NoteNoDecision(setting, options);
  return BadValue(setting, absl::StrCat("use a power of two up to ", kMostRegisterThreads), problem);
}

absl::Status CheckHostSize(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, {.is_inclusive = true}, options);
  return bytes.ok() ? NoteNoDecision(setting, options) : bytes.status();
}

absl::Status CheckHostSegment(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, {}, options);
  return bytes.ok() ? NoteNoDecision(setting, options) : bytes.status();
}

absl::Status CheckClasses(const Setting& setting, Options& options) {
  if (absl::StartsWith(setting.value, "[")) return NoteNoDecision(setting, options);
  return BadValue(setting, "use [class:reserve,...]");
}

absl::Status CheckNothing(const Setting& setting, Options& options) { return NoteNoDecision(setting, options); }

}  // namespace ashlar::policy
