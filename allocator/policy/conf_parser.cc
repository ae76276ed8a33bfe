// The grammar of PYTORCH_CUDA_ALLOC_CONF: key:value pairs with commas between, blanks ignored, a trailing comma fine;
// a value may be a list [k:v,...]. Each key is one row of a table: from which version on, and how it is read.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/base/nearest_word.h"
#include "allocator/policy/conf_number.h"
#include "allocator/policy/conf_split.h"
#include "allocator/policy/options.h"
#include "allocator/policy/placement_plan.h"

namespace ashlar::policy {
namespace {

absl::Status Bad(const Setting& setting, absl::string_view allowed, absl::string_view problem = "is not allowed") {
  return absl::InvalidArgumentError(absl::StrCat(setting.key, ": '", setting.value, "' ", problem, ": ", allowed));
}

// A limit of whole MiB; `low_from` names the key that it comes from, if one does.
absl::StatusOr<std::uint64_t> ReadMebibytes(const Setting& setting, std::uint64_t low_mb, bool inclusive,
                                            absl::string_view low_from = "") {
  std::uint64_t value = 0;
  absl::string_view problem = WholeProblem(setting.value, value);
  if (problem.empty() && (value < low_mb || (!inclusive && value == low_mb))) problem = kTooSmall;
  if (problem.empty()) return std::min(value, kUnlimited / kMiB) * kMiB;
  return Bad(setting,
             absl::StrCat("use a whole number of MiB ", inclusive ? ">= " : "> ", low_mb, low_from.empty() ? "" : ", ",
                          low_from),
             problem);
}

// A range within 0 and 1.
struct ShareRange {
  bool has_zero = false;
  bool has_one = false;
  absl::string_view allowed;
};

absl::StatusOr<double> ReadShare(const Setting& setting, const ShareRange& share) {
  double value = 0;
  if (!absl::SimpleAtod(setting.value, &value) || std::isnan(value)) return Bad(setting, share.allowed, kNoNumber);
  if (value < 0 || (value == 0 && !share.has_zero)) return Bad(setting, share.allowed, kTooSmall);
  if (value > 1 || (value == 1 && !share.has_one)) return Bad(setting, share.allowed, kTooLarge);
  return value;
}

absl::StatusOr<bool> ReadBool(const Setting& setting) {
  if (setting.value == "True") return true;
  if (setting.value == "False") return false;
  return Bad(setting, "use True or False");
}

// `[k:v,...,>:v]`; see Options::roundup_power2_divisions.
absl::Status ReadDivisionsList(const Setting& setting, Options& options) {
  static constexpr absl::string_view kAllowed =
      "use [size:divisions,...,>:divisions], sizes in MiB and powers of two, divisions powers of two or 0";
  absl::string_view list = setting.value;
  if (!absl::ConsumePrefix(&list, "[") || !absl::ConsumeSuffix(&list, "]")) return Bad(setting, kAllowed);
  const auto bad = [&setting](absl::string_view part, absl::string_view problem) {
    return Bad(setting, kAllowed, absl::StrCat("is not allowed, '", part, "' ", problem));
  };
  auto& divisions = options.roundup_power2_divisions;
  std::size_t last = 0;
  bool is_first = true;
  for (const absl::string_view item : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> pair = absl::StrSplit(item, ':');
    if (pair.size() != 2) return bad(item, "is no size:divisions");
    std::uint64_t value = 0;
    const absl::string_view problem = PowerProblem(pair[1], value);
    if (!problem.empty() && (problem != kNoPower || value != 0)) return bad(pair[1], problem);
    if (pair[0] == ">") {
      // Until 2.6 the last named interval takes the value too; see the upstream defects in docs/internals/policy.md.
      const std::size_t from = IsLate(options.compat) ? last + 1 : last;
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(std::min(from, divisions.size())), divisions.end(),
                value);
      continue;
    }
    std::uint64_t boundary = 0;
    if (const absl::string_view wrong = PowerProblem(pair[0], boundary); !wrong.empty()) return bad(pair[0], wrong);
    last = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(boundary)), divisions.size() - 1);
    if (is_first) std::fill(divisions.begin(), divisions.begin() + static_cast<std::ptrdiff_t>(last), value);
    is_first = false;
    divisions[last] = value;
  }
  return absl::OkStatus();
}

absl::Status ReadDivisions(const Setting& setting, Options& options) {
  if (absl::StartsWith(setting.value, "[")) {
    if (options.compat == Compat::kTorch113) return Bad(setting, "torch-1.13 knows one power of two for all sizes");
    return ReadDivisionsList(setting, options);
  }
  std::uint64_t value = 0;
  if (const absl::string_view problem = PowerProblem(setting.value, value); !problem.empty()) {
    return Bad(setting, "use a power of two", problem);
  }
  options.roundup_power2_divisions.fill(value);
  return absl::OkStatus();
}

absl::Status ReadLargeSegment(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, 10, false);
  if (!bytes.ok()) return bytes.status();
  options.large_segment_bytes = *bytes;
  options.max_non_split_rounding_bytes = *bytes;
  return absl::OkStatus();
}

absl::Status ReadThreshold(const Setting& setting, Options& options) {
  const absl::StatusOr<double> value = ReadShare(setting, {.allowed = "use a number between 0 and 1, both exclusive"});
  if (!value.ok()) return value.status();
  options.garbage_collection_threshold = *value;
  return absl::OkStatus();
}

absl::Status ReadFraction(const Setting& setting, Options& options) {
  const absl::StatusOr<double> value =
      ReadShare(setting, {.has_zero = true, .has_one = true, .allowed = "use a number from 0 to 1"});
  if (!value.ok()) return value.status();
  options.per_process_memory_fraction = *value;
  return absl::OkStatus();
}

// A fraction of the device's memory or a number of GiB ("64g"); what cannot be read is ignored, as upstream does.
absl::Status ReadReserve(const Setting& setting, Options& options) {
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

absl::Status ReadBypass(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, 0, true);
  if (!bytes.ok()) return bytes.status();
  options.roundup_bypass_threshold_bytes = *bytes;
  return absl::OkStatus();
}

absl::Status ReadSoftFraction(const Setting& setting, Options& options) {
  const absl::StatusOr<double> value =
      ReadShare(setting, {.has_one = true, .allowed = "use a number above 0, up to 1"});
  if (!value.ok()) return value.status();
  options.soft_limit_fraction = *value;
  return absl::OkStatus();
}

template <bool Options::*kFlag>
absl::Status ReadFlag(const Setting& setting, Options& options) {
  const absl::StatusOr<bool> value = ReadBool(setting);
  if (!value.ok()) return value.status();
  options.*kFlag = *value;
  return absl::OkStatus();
}

template <std::uint64_t Options::*kBytes>
absl::Status ReadSplitLimit(const Setting& setting, Options& options) {
  const bool late = IsLate(options.compat);
  const absl::StatusOr<std::uint64_t> bytes =
      late ? ReadMebibytes(setting, options.large_segment_bytes / kMiB, true, "the large_segment_size_mb in force")
           : ReadMebibytes(setting, kDefaultLargeSegmentBytes / kMiB, false);
  if (!bytes.ok()) return bytes.status();
  options.*kBytes = *bytes;
  return absl::OkStatus();
}

template <std::optional<std::uint64_t> Options::*kBytes>
absl::Status ReadLimit(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, 0, false);
  if (!bytes.ok()) return bytes.status();
  options.*kBytes = *bytes;
  return absl::OkStatus();
}

absl::Status ReadMostWaits(const Setting& setting, Options& options) {
  std::uint64_t value = 0;
  absl::string_view problem = WholeProblem(setting.value, value);
  if (problem.empty() && (value == 0 || value > 1000)) problem = value == 0 ? kTooSmall : kTooLarge;
  if (!problem.empty()) return Bad(setting, "use a whole number from 1 to 1000", problem);
  options.borrow_most_waits = value;
  return absl::OkStatus();
}

absl::Status ReadOrder(const Setting& setting, Options& options) {
  const absl::StatusOr<FreeOrder> order = ParseFreeOrder(setting.value);
  if (!order.ok()) return Bad(setting, order.status().message());
  options.free_order = *order;
  return absl::OkStatus();
}

absl::Status ReadPolicy(const Setting& setting, Options& options) {
  if (setting.value == "ashlar") {
    options.policy = Policy::kAshlar;
  } else if (setting.value == "torch") {
    options.policy = Policy::kTorch;
  } else {
    return Bad(setting, "use ashlar or torch");
  }
  return absl::OkStatus();
}

// The file is read here, so that what is wrong with it is told at the start.
absl::Status ReadPlanFile(const Setting& setting, Options& options) {
  absl::StatusOr<PlacementPlan> plan = ReadPlan(setting.value);
  if (!plan.ok()) return absl::InvalidArgumentError(absl::StrCat(setting.key, ": ", plan.status().message()));
  options.plan = std::make_shared<const PlacementPlan>(*std::move(plan));
  return absl::OkStatus();
}

absl::Status ReadBackend(const Setting& setting, Options& options) {
  if (setting.value == "native") return absl::OkStatus();
  if (setting.value == "cudaMallocAsync" && options.compat != Compat::kTorch113) {
    return Bad(setting, "only 'native' has a block-splitting policy that can be replayed");
  }
  return Bad(setting, "use native");
}

// Changes where nothing lands: noted.
absl::Status ReadNothing(const Setting& setting, Options& options) {
  options.notes.push_back(absl::StrCat(setting.key, ": accepted, changes no decision here"));
  return absl::OkStatus();
}

// Read before all others, wherever it stands.
absl::Status ReadEarlier(const Setting&, Options&) { return absl::OkStatus(); }

enum class KnownTo : std::uint8_t { kAll, k113, kSince26, kLate, kUs };

struct Key {
  absl::string_view name;
  KnownTo known_to;
  absl::Status (*read)(const Setting&, Options&);
};

constexpr Key kKeys[] = {
    {"max_split_size_mb", KnownTo::kAll, ReadSplitLimit<&Options::max_split_size_bytes>},
    {"garbage_collection_threshold", KnownTo::kAll, ReadThreshold},
    {"roundup_power2_divisions", KnownTo::kAll, ReadDivisions},
    {"backend", KnownTo::kAll, ReadBackend},
    {"roundup_bypass_threshold_mb", KnownTo::k113, ReadBypass},
    {"expandable_segments", KnownTo::kSince26, ReadFlag<&Options::expandable_segments>},
    {"max_non_split_rounding_mb", KnownTo::kSince26, ReadSplitLimit<&Options::max_non_split_rounding_bytes>},
    {"large_segment_size_mb", KnownTo::kLate, ReadEarlier},
    {"throw_on_cudamalloc_oom", KnownTo::kLate, ReadFlag<&Options::throw_on_cudamalloc_oom>},
    {"per_process_memory_fraction", KnownTo::kLate, ReadFraction},
    {"expandable_segments_reserve", KnownTo::kLate, ReadReserve},
    {"release_lock_on_cudamalloc", KnownTo::kSince26, ReadNothing},
    {"pinned_use_cuda_host_register", KnownTo::kSince26, ReadNothing},
    {"pinned_num_register_threads", KnownTo::kSince26, ReadNothing},
    {"pinned_use_background_threads", KnownTo::kSince26, ReadNothing},
    {"pinned_reserve_segment_size_mb", KnownTo::kSince26, ReadNothing},
    {"graph_capture_record_stream_reuse", KnownTo::kSince26, ReadNothing},
    {"pinned_use_hip_host_register", KnownTo::kSince26, ReadNothing},
    {"release_lock_on_hipmalloc", KnownTo::kSince26, ReadNothing},
    {"expandable_segments_reserve_by_class", KnownTo::kSince26, ReadNothing},
    {"use_cuda_host_register", KnownTo::kSince26, ReadNothing},
    {"compat", KnownTo::kUs, ReadEarlier},
    {"free_order", KnownTo::kUs, ReadOrder},
    {"policy", KnownTo::kUs, ReadPolicy},
    {"search_after_sync", KnownTo::kUs, ReadFlag<&Options::search_after_sync>},
    {"sync_just_enough", KnownTo::kUs, ReadFlag<&Options::sync_just_enough>},
    {"borrow_across_streams", KnownTo::kUs, ReadFlag<&Options::borrow_across_streams>},
    {"borrow_most_waits", KnownTo::kUs, ReadMostWaits},
    {"memory_limit_mb", KnownTo::kUs, ReadLimit<&Options::memory_limit_bytes>},
    {"soft_limit_mb", KnownTo::kUs, ReadLimit<&Options::soft_limit_bytes>},
    {"soft_limit_fraction", KnownTo::kUs, ReadSoftFraction},
    {"plan", KnownTo::kUs, ReadPlanFile},
    {"report_leaks", KnownTo::kUs, ReadFlag<&Options::report_leaks>},
};

bool Knows(KnownTo known_to, Compat compat, Keys keys) {
  switch (known_to) {
    case KnownTo::kAll:
      return true;
    case KnownTo::k113:
      return compat == Compat::kTorch113;
    case KnownTo::kSince26:
      return compat != Compat::kTorch113;
    case KnownTo::kLate:
      return IsLate(compat);
    case KnownTo::kUs:
      return keys == Keys::kAshlar;
  }
  return false;
}

// "; did you mean 'max_split_size_mb'?" where a key that may be used here is near.
std::string Suggestion(absl::string_view wrong, Compat compat, Keys keys) {
  std::vector<std::string> known;
  for (const Key& key : kKeys) {
    if (Knows(key.known_to, compat, keys)) known.emplace_back(key.name);
  }
  const std::string question = DidYouMean(wrong, known);
  return question.empty() ? "" : absl::StrCat("; ", question);
}

absl::Status Apply(const Setting& setting, Keys keys, Options& options) {
  for (const Key& key : kKeys) {
    if (key.name == setting.key && Knows(key.known_to, options.compat, keys)) return key.read(setting, options);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", setting.key, "' is no setting of ", CompatName(options.compat),
                                                 " (value '", setting.value, "')",
                                                 Suggestion(setting.key, options.compat, keys)));
}

// What keeps large blocks whole in PyTorch has no place here: free pages move to where a large request needs them. Nor
// have the orders of PyTorch's versions, unless they are asked for: the lowest of equal blocks is taken.
void UsePages(bool has_order, Options& options) {
  options.expandable_segments = true;
  if (!has_order) options.free_order = FreeOrder::kAddress;
  if (options.max_split_size_bytes == kUnlimited) return;
  options.max_split_size_bytes = kUnlimited;
  options.notes.push_back(
      "max_split_size_mb: policy:ashlar splits blocks of any size and moves whole free pages instead");
}

absl::StatusOr<Compat> ReadCompat(const std::vector<Setting>& settings, Compat otherwise) {
  for (const Setting& setting : settings) {
    if (setting.key != "compat") continue;
    const absl::StatusOr<Compat> compat = ParseCompat(setting.value);
    if (!compat.ok()) return Bad(setting, compat.status().message());
    otherwise = *compat;
  }
  return otherwise;
}

}  // namespace

absl::StatusOr<Options> ParseConf(absl::string_view conf, Compat compat, Keys keys) {
  absl::StatusOr<std::vector<Setting>> settings = SplitConf(conf);
  if (!settings.ok()) return settings.status();
  Options options;
  if (keys == Keys::kAshlar) {
    const absl::StatusOr<Compat> named = ReadCompat(*settings, compat);
    if (!named.ok()) return named.status();
    compat = *named;
  }
  options.compat = compat;
  options.free_order = DefaultFreeOrder(compat);
  options.conf = std::string(conf);
  for (const Setting& setting : *settings) {
    if (!IsLate(compat) || setting.key != "large_segment_size_mb") continue;
    if (absl::Status status = ReadLargeSegment(setting, options); !status.ok()) return status;
  }
  for (const Setting& setting : *settings) {
    if (absl::Status status = Apply(setting, keys, options); !status.ok()) return status;
  }
  const auto is_order = [](const Setting& setting) { return setting.key == "free_order"; };
  if (options.policy == Policy::kAshlar) UsePages(std::any_of(settings->begin(), settings->end(), is_order), options);
  if (options.plan != nullptr && options.expandable_segments) {
    return absl::InvalidArgumentError(
        "plan: places blocks in one segment: take expandable_segments:True or "
        "policy:ashlar out, or the plan");
  }
  return options;
}

std::vector<KeyInfo> AllKeys() {
  std::vector<KeyInfo> out;
  for (const Key& key : kKeys) out.push_back({key.name, key.known_to == KnownTo::kUs, key.read != ReadNothing});
  return out;
}

}  // namespace ashlar::policy
