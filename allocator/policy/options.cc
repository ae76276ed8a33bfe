#include "allocator/policy/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/nearest_word.h"
#include "allocator/policy/conf_split.h"
#include "allocator/policy/placement_plan.h"
#include "allocator/policy/strategy.h"
#include "allocator/policy/torch_keys.h"

namespace ashlar::policy {
namespace {

constexpr std::array<std::pair<FreeOrder, absl::string_view>, 3> kOrderNames = {{
    {FreeOrder::kAddress, "address"},
    {FreeOrder::kPerBlockCounter, "per-block-counter"},
    {FreeOrder::kPerSegmentCounter, "per-segment-counter"},
}};

}  // namespace

void KeepFreeOrder(const Options& of_run, Options& options) {
  if (options.policy == of_run.policy) options.free_order = of_run.free_order;
}

absl::string_view FreeOrderName(FreeOrder order) {
  for (const auto& [candidate, name] : kOrderNames) {
    if (candidate == order) return name;
  }
  return "";
}

absl::StatusOr<FreeOrder> ParseFreeOrder(absl::string_view name) {
  std::string known;
  for (const auto& [order, text] : kOrderNames) {
    if (text == name) return order;
    absl::StrAppend(&known, known.empty() ? "" : ", ", text);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no order of free blocks: use one of ", known));
}

// Settings as a text: what PyTorch's grammar (conf_split.h) makes of it, and each key as one row of a table: from which
// version on, and how it is read. PyTorch's own keys are read by torch_keys.h.

namespace {

absl::Status ReadSoftFraction(const Setting& setting, Options& options) {
  static constexpr absl::string_view kAllowed = "use a number above 0, up to 1";
  double value = 0;
  if (!absl::SimpleAtod(setting.value, &value) || std::isnan(value)) return BadValue(setting, kAllowed, kNoNumber);
  if (value <= 0) return BadValue(setting, kAllowed, kTooSmall);
  if (value > 1) return BadValue(setting, kAllowed, kTooLarge);
  options.soft_limit_fraction = value;
  return absl::OkStatus();
}

template <bool Options::*kFlag>
absl::Status ReadFlag(const Setting& setting, Options& options) {
  const absl::StatusOr<bool> value = ReadBool(setting);
  if (!value.ok()) return value.status();
  options.*kFlag = *value;
  return absl::OkStatus();
}

template <std::optional<std::uint64_t> Options::*kBytes>
absl::Status ReadLimit(const Setting& setting, Options& options) {
  std::uint64_t value = 0;
  absl::string_view problem = WholeProblem(setting.value, value);
  if (problem.empty() && value == 0) problem = kTooSmall;
  if (!problem.empty()) return BadValue(setting, "use a whole number of MiB > 0", problem);
  options.*kBytes = std::min(value, kUnlimited / kMiB) * kMiB;
  return absl::OkStatus();
}

absl::Status ReadMostWaits(const Setting& setting, Options& options) {
  std::uint64_t value = 0;
  absl::string_view problem = WholeProblem(setting.value, value);
  if (problem.empty() && (value == 0 || value > 1000)) problem = value == 0 ? kTooSmall : kTooLarge;
  if (!problem.empty()) return BadValue(setting, "use a whole number from 1 to 1000", problem);
  options.borrow_most_waits = value;
  return absl::OkStatus();
}

absl::Status ReadOrder(const Setting& setting, Options& options) {
  const absl::StatusOr<FreeOrder> order = ParseFreeOrder(setting.value);
  if (!order.ok()) return BadValue(setting, order.status().message());
  options.free_order = *order;
  return absl::OkStatus();
}

absl::Status ReadPolicy(const Setting& setting, Options& options) {
  for (const Policy policy : {Policy::kTorch, Policy::kAshlar}) {
    if (setting.value != StrategyOf(policy).traits().name) continue;
    options.policy = policy;
    return absl::OkStatus();
  }
  return BadValue(setting, "use ashlar or torch");
}

// The file is read here, so that what is wrong with it is told at the start.
absl::Status ReadPlanFile(const Setting& setting, Options& options) {
  absl::StatusOr<PlacementPlan> plan = ReadPlan(setting.value);
  if (!plan.ok()) return absl::InvalidArgumentError(absl::StrCat(setting.key, ": ", plan.status().message()));
  options.plan = std::make_shared<const PlacementPlan>(*std::move(plan));
  return absl::OkStatus();
}

// Read before all others, wherever it stands; here only whether it could be.
absl::Status CheckEarlier(const Setting& setting, Options& options) {
  Options unused = options;
  if (setting.key != "compat") return ReadLargeSegment(setting, unused);
  const absl::StatusOr<Compat> compat = ParseCompat(setting.value);
  return compat.ok() ? absl::OkStatus() : BadValue(setting, compat.status().message());
}

// To which rules a key is known, by their first release.
struct Known {
  Release since = {0, 0};
  Release until = kNewestRelease;
  Release since_in_ours = since;  // in texts that may use our keys
  bool is_ours = false;           // is known in those alone
  bool is_of_xpu = false;         // to the rules for Intel's GPUs
};

constexpr Known kToAll = {}, kTo113 = {.until = {0, 0}}, kSince26 = {.since = {2, 0}}, kSince210 = {.since = {2, 10}},
                kSince213 = {.since = {2, 13}}, kReserve = {.since = {2, 13}, .since_in_ours = {2, 10}},
                kToUs = {.is_ours = true}, kToXpuToo = {.since = {2, 0}, .is_of_xpu = true},
                kToUsOnXpuToo = {.is_ours = true, .is_of_xpu = true};

struct Key {
  absl::string_view name;
  Known known;
  absl::Status (*read)(const Setting&, Options&);
  bool has_effect = true;
};

constexpr Key kKeys[] = {
    {"max_split_size_mb", kToAll, ReadMaxSplit},
    {"garbage_collection_threshold", kToAll, ReadThreshold},
    {"roundup_power2_divisions", kToAll, ReadDivisions},
    {"backend", kToAll, ReadBackend},
    {"roundup_bypass_threshold_mb", kTo113, ReadBypass},
    {"expandable_segments", kToXpuToo, ReadFlag<&Options::expandable_segments>},
    {"max_non_split_rounding_mb", kSince26, ReadNonSplitRounding},
    {"large_segment_size_mb", kSince210, CheckEarlier},
    {"throw_on_cudamalloc_oom", kSince210, ReadFlag<&Options::throw_on_cudamalloc_oom>},
    {"per_process_memory_fraction", kSince210, ReadFraction},
    {"expandable_segments_reserve", kReserve, ReadReserve},
    {"release_lock_on_cudamalloc", kSince26, CheckFlag, false},
    {"pinned_use_cuda_host_register", kSince26, CheckFlag, false},
    {"pinned_num_register_threads", kSince26, CheckRegisterThreads, false},
    {"pinned_use_background_threads", kSince26, CheckFlag, false},
    {"pinned_reserve_segment_size_mb", kSince210, CheckHostSegment, false},
    {"graph_capture_record_stream_reuse", kSince210, ReadFlag<&Options::graph_capture_record_stream_reuse>},
    {"pinned_use_hip_host_register", kSince26, CheckFlag, false},
    {"release_lock_on_hipmalloc", kSince26, CheckFlag, false},
    {"pinned_max_round_threshold_mb", kSince213, CheckHostSize, false},
    {"pinned_max_cached_size_mb", kSince213, CheckHostSize, false},
    {"pinned_free_catch_all", kSince210, CheckFlag, false},
    {"expandable_segments_reserve_by_class", kSince213, CheckClasses, false},
    {"use_cuda_host_register", kSince213, CheckNothing, false},
    {"compat", kToUsOnXpuToo, CheckEarlier},
    {"free_order", kToUsOnXpuToo, ReadOrder},
    {"policy", kToUs, ReadPolicy},
    {"search_after_sync", kToUs, ReadFlag<&Options::search_after_sync>},
    {"sync_just_enough", kToUs, ReadFlag<&Options::sync_just_enough>},
    {"borrow_across_streams", kToUs, ReadFlag<&Options::borrow_across_streams>},
    {"borrow_most_waits", kToUs, ReadMostWaits},
    {"memory_limit_mb", kToUs, ReadLimit<&Options::memory_limit_bytes>},
    {"soft_limit_mb", kToUs, ReadLimit<&Options::soft_limit_bytes>},
    {"soft_limit_fraction", kToUs, ReadSoftFraction},
    {"plan", kToUs, ReadPlanFile},
    {"report_leaks", kToUs, ReadFlag<&Options::report_leaks>},
};

bool Knows(const Known& known, Compat compat, Keys keys) {
  const TorchRules& rules = RulesOf(compat);
  const Release release = rules.since;
  if (rules.is_xpu && !known.is_of_xpu) return false;
  if (known.is_ours && keys != Keys::kAshlar) return false;
  return release >= (keys == Keys::kAshlar ? known.since_in_ours : known.since) && release <= known.until;
}

// "; did you mean 'max_split_size_mb'?" where a key that may be used here is near.
std::string Suggestion(absl::string_view wrong, Compat compat, Keys keys) {
  std::vector<std::string> known;
  for (const Key& key : kKeys) {
    if (Knows(key.known, compat, keys)) known.emplace_back(key.name);
  }
  const std::string question = DidYouMean(wrong, known);
  return question.empty() ? "" : absl::StrCat("; ", question);
}

// What a setting that cannot be taken does: it is an error, or in a record it is left out and noted.
class Reader {
 public:
  Reader(absl::string_view conf, Compat compat, Keys keys, bool is_record)
      : keys_(keys), is_record_(is_record), conf_(conf) {
    options_.compat = compat;
    options_.conf = std::string(conf);
  }

  absl::StatusOr<Options> Read() {
    if (absl::Status status = ReadCompat(); !status.ok()) return status;
    options_.free_order = RulesOf(options_.compat).free_order;
    const Split split = SplitAsFarAsItGoes(conf_, GrammarOf(options_.compat));
    if (absl::Status status = Allow(split.status); !status.ok()) return status;
    if (absl::Status status = ReadLargeSegments(split.settings); !status.ok()) return status;
    if (absl::Status status = ReadAll(split.settings); !status.ok()) return status;
    if (absl::Status status = Finish(split.settings); !status.ok()) return status;
    if (is_any_left_out_) options_.conf = taken_;
    return std::move(options_);
  }

 private:
  // The error, or nothing where it is noted.
  absl::Status Allow(const absl::Status& status) {
    if (status.ok() || !is_record_) return status;
    options_.notes.push_back(absl::StrCat("a recorded setting is left out: ", status.message()));
    is_any_left_out_ = true;
    return absl::OkStatus();
  }

  // What cannot be read changes nothing.
  absl::Status Try(const Setting& setting, absl::Status (*read)(const Setting&, Options&)) {
    Options changed = options_;
    absl::Status status = read(setting, changed);
    if (status.ok()) options_ = std::move(changed);
    return status;
  }

  // The version decides how the text is cut, so it is looked for first, by the grammar that takes most.
  absl::Status ReadCompat() {
    if (keys_ != Keys::kAshlar) return absl::OkStatus();
    for (const Setting& setting : SplitAsFarAsItGoes(conf_, Grammar::kLater).settings) {
      if (setting.key != "compat") continue;
      const absl::StatusOr<Compat> compat = ParseCompat(setting.value);
      if (!compat.ok() && !is_record_) return BadValue(setting, compat.status().message());
      if (compat.ok()) options_.compat = *compat;
    }
    return absl::OkStatus();
  }

  // Before the others, wherever it stands: their limits follow it.
  absl::Status ReadLargeSegments(const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      if (setting.key != "large_segment_size_mb" || !IsLate(options_.compat)) continue;
      if (absl::Status status = Try(setting, ReadLargeSegment); !status.ok() && !is_record_) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadAll(const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      const absl::Status status = ReadOne(setting);
      if (absl::Status allowed = Allow(status); !allowed.ok()) return allowed;
      if (status.ok()) absl::StrAppend(&taken_, taken_.empty() ? "" : ",", setting.key, ":", setting.value);
    }
    return absl::OkStatus();
  }

  absl::Status ReadOne(const Setting& setting) {
    for (const Key& key : kKeys) {
      if (key.name != setting.key || !Knows(key.known, options_.compat, keys_)) continue;
      return Try(setting, key.read);
    }
    return absl::InvalidArgumentError(absl::StrCat("'", setting.key, "' is no setting of ", CompatName(options_.compat),
                                                   " (value '", setting.value, "')",
                                                   Suggestion(setting.key, options_.compat, keys_)));
  }

  absl::Status Finish(const std::vector<Setting>& settings) {
    const auto is_order = [](const Setting& setting) { return setting.key == "free_order"; };
    StrategyOf(options_.policy).Settle(std::any_of(settings.begin(), settings.end(), is_order), options_);
    if (options_.plan == nullptr || !options_.expandable_segments) return absl::OkStatus();
    options_.plan = nullptr;
    return Allow(
        absl::InvalidArgumentError("plan: places blocks in one segment: take expandable_segments:True or "
                                   "policy:ashlar out, or the plan"));
  }

  Keys keys_;
  bool is_record_;
  absl::string_view conf_;
  Options options_;
  std::string taken_;  // the settings that were
  bool is_any_left_out_ = false;
};

}  // namespace

absl::StatusOr<Options> ParseConf(absl::string_view conf, Compat compat, Keys keys) {
  return Reader(conf, compat, keys, false).Read();
}

Options ReadRecordedConf(absl::string_view conf, Compat compat) {
  return *Reader(conf, compat, Keys::kAshlar, true).Read();
}

std::vector<KeyInfo> AllKeys() {
  std::vector<KeyInfo> out;
  for (const Key& key : kKeys) out.push_back({key.name, key.known.is_ours, key.has_effect});
  return out;
}

namespace {

struct FixedKey {
  absl::string_view name;
  bool (*is_same)(const Options& a, const Options& b);
};

// Pages of expandable segments have the size of large segments.
bool SameLargeSegments(const Options& a, const Options& b) {
  return !a.expandable_segments || a.large_segment_bytes == b.large_segment_bytes;
}
bool SameReserve(const Options& a, const Options& b) {
  return a.expandable_reserve.bytes == b.expandable_reserve.bytes &&
         a.expandable_reserve.fraction_of_total == b.expandable_reserve.fraction_of_total;
}

constexpr FixedKey kFixed[] = {
    {"compat", [](const Options& a, const Options& b) { return a.compat == b.compat; }},
    {"free_order", [](const Options& a, const Options& b) { return a.free_order == b.free_order; }},
    {"policy", [](const Options& a, const Options& b) { return a.policy == b.policy; }},
    {"plan", [](const Options& a, const Options& b) { return (a.plan == nullptr) == (b.plan == nullptr); }},
    {"expandable_segments",
     [](const Options& a, const Options& b) { return a.expandable_segments == b.expandable_segments; }},
    {"large_segment_size_mb", SameLargeSegments},
    {"expandable_segments_reserve", SameReserve},
    {"throw_on_cudamalloc_oom",
     [](const Options& a, const Options& b) { return a.throw_on_cudamalloc_oom == b.throw_on_cudamalloc_oom; }},
    {"per_process_memory_fraction",
     [](const Options& a, const Options& b) { return a.per_process_memory_fraction == b.per_process_memory_fraction; }},
    {"memory_limit_mb",
     [](const Options& a, const Options& b) { return a.memory_limit_bytes == b.memory_limit_bytes; }},
    {"soft_limit_mb", [](const Options& a, const Options& b) { return a.soft_limit_bytes == b.soft_limit_bytes; }},
    {"soft_limit_fraction",
     [](const Options& a, const Options& b) { return a.soft_limit_fraction == b.soft_limit_fraction; }},
    {"report_leaks", [](const Options& a, const Options& b) { return a.report_leaks == b.report_leaks; }},
};

}  // namespace

absl::StatusOr<Options> ChangedSettings(const Options& now, absl::string_view conf) {
  const absl::StatusOr<Options> before = ParseConf(now.conf, now.compat, Keys::kAshlar);
  if (!before.ok()) return before.status();
  absl::StatusOr<Options> wanted = ParseConf(conf, now.compat, Keys::kAshlar);
  if (!wanted.ok()) return wanted.status();
  for (const FixedKey& key : kFixed) {
    if (key.is_same(*before, *wanted)) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", key.name,
                                                   "' cannot change while the allocator runs: it was made with '",
                                                   now.conf, "', and '", conf, "' says otherwise"));
  }
  Options out = now;
  if (!out.expandable_segments) out.large_segment_bytes = wanted->large_segment_bytes;
  out.max_split_size_bytes = wanted->max_split_size_bytes;
  out.max_non_split_rounding_bytes = wanted->max_non_split_rounding_bytes;
  out.garbage_collection_threshold = wanted->garbage_collection_threshold;
  out.roundup_power2_divisions = wanted->roundup_power2_divisions;
  out.roundup_bypass_threshold_bytes = wanted->roundup_bypass_threshold_bytes;
  out.graph_capture_record_stream_reuse = wanted->graph_capture_record_stream_reuse;
  out.search_after_sync = wanted->search_after_sync;
  out.sync_just_enough = wanted->sync_just_enough;
  out.borrow_across_streams = wanted->borrow_across_streams;
  out.borrow_most_waits = wanted->borrow_most_waits;
  out.conf = std::move(wanted->conf);
  out.notes = std::move(wanted->notes);
  return out;
}

}  // namespace ashlar::policy
