#include "analyzer/whatif/what_if.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/whatif/parallel.h"
#include "analyzer/whatif/settings_space.h"

namespace ashlar::whatif {
namespace {

// What the confs say, but for those that decide as the baseline does.
absl::StatusOr<std::vector<policy::Options>> OtherOptions(const WhatIfSettings& settings) {
  const bool is_standard = settings.confs.empty();
  const std::string carried = is_standard ? CarriedConf(settings.baseline.conf) : "";
  std::vector<policy::Options> out;
  for (const std::string& conf : is_standard ? StandardConfs() : settings.confs) {
    absl::StatusOr<policy::Options> options =
        policy::ParseConf(JoinConfs(conf, carried), settings.baseline.compat, policy::Keys::kAshlar);
    if (!options.ok()) {
      // 1.13 has no expandable segments: a standard row that the version does not know is left out.
      if (is_standard) continue;
      return options.status();
    }
    if (SameDecisions(*options, settings.baseline)) continue;
    policy::KeepFreeOrder(settings.baseline, *options);
    out.push_back(*std::move(options));
  }
  return out;
}

std::uint64_t LimitOf(const WhatIfSettings& settings, const policy::Options& options) {
  const std::optional<double> fraction =
      settings.memory_fraction.has_value() ? settings.memory_fraction : options.per_process_memory_fraction;
  const double share = std::clamp(fraction.value_or(1.0), 0.0, 1.0);
  const auto total = static_cast<double>(*settings.capacity_bytes + settings.device.outside_bytes);
  return std::min(*settings.capacity_bytes, static_cast<std::uint64_t>(total * share));
}

// What takes more steps than this to fill the memory is no leak that a projection of three steps can tell.
constexpr std::uint64_t kFarthestSteps = 1000;

// A leak fills the memory later than the projected steps: when, by its growth.
void Extrapolate(std::uint64_t peak_allocated_bytes, ProjectedPart& out) {
  if (out.ooms > 0 || out.steps == 0 || out.growth_bytes_per_step < out.available_bytes / kFarthestSteps + 1) return;
  const std::uint64_t room = out.available_bytes - std::min(out.available_bytes, peak_allocated_bytes);
  const std::uint64_t more_steps = room / out.growth_bytes_per_step + 1;
  out.ooms = 1;
  out.is_extrapolated = true;
  out.failed_steps_later = out.steps - 1 + more_steps;
  out.failed_after = out.requests + more_steps * (out.requests / out.steps);
  out.needed_bytes = peak_allocated_bytes + more_steps * out.growth_bytes_per_step;
}

// Goes on with a replay that has served the request that ended the recorded run.
absl::StatusOr<ProjectedPart> RunProjected(const analyses::Continuation& next, const WhatIfSettings& settings,
                                           const policy::Options& options, replay::RequestReplay& replay,
                                           replay::OpSink* sink) {
  ProjectedPart out;
  out.available_bytes = LimitOf(settings, options);
  out.growth_bytes_per_step = next.growth_bytes_per_step;
  out.is_rising = next.is_rising;
  const std::uint64_t retries_before = replay.allocator().stats().num_alloc_retries;
  for (std::size_t i = next.failed + 1; i < next.requests.requests.size() && out.ooms == 0; ++i) {
    const trace::Op& op = next.requests.requests[i];
    if (absl::Status status = replay.RunPart(next.requests, i, i + 1, sink); !status.ok()) return status;
    while (i >= next.periods[out.steps]) ++out.steps;
    if (op.kind != trace::OpKind::kAlloc) continue;
    ++out.requests;
    if (replay.IsLive(op.id) || op.bytes == 0) continue;
    out.ooms = 1;
    out.failed_after = out.requests;
    out.failed_steps_later = out.steps;
    out.needed_bytes = static_cast<std::uint64_t>(replay.allocator().stats().allocated_bytes.all().current) + op.bytes;
  }
  ++out.steps;
  const core::Stats stats = replay.allocator().stats();
  out.peak_reserved_bytes = static_cast<std::uint64_t>(stats.reserved_bytes.all().peak);
  out.retries = stats.num_alloc_retries - retries_before;
  Extrapolate(static_cast<std::uint64_t>(stats.allocated_bytes.all().peak), out);
  return out;
}

}  // namespace

absl::StatusOr<WhatIfRow> RunWhatIf(const trace::RequestTrace& requests, const WhatIfSettings& settings,
                                    const policy::Options& options, const analyses::Continuation* next,
                                    replay::OpSink* sink) {
  replay::RequestReplayOptions replay_options{options, settings.device, settings.memory_fraction};
  replay_options.device.capacity_bytes = settings.capacity_bytes.value_or(replay::kAmpleBytes);
  replay::RequestReplay replay(std::move(replay_options));
  // What stands after the request that ended the run are frees: they change no figure of a row.
  if (absl::Status status =
          next == nullptr ? replay.Run(requests, sink) : replay.RunPart(next->requests, 0, next->failed + 1, sink);
      !status.ok()) {
    return status;
  }
  const core::Stats& stats = replay.allocator().stats();
  WhatIfRow row;
  row.conf = options.conf;
  row.peak_reserved_bytes = static_cast<std::uint64_t>(stats.reserved_bytes.all().peak);
  row.peak_allocated_bytes = static_cast<std::uint64_t>(stats.allocated_bytes.all().peak);
  row.ooms = stats.num_ooms + stats.num_oom_rejections + replay.failed_wakes();
  row.driver_calls = replay.device().calls().MemoryCalls();
  row.cost_ns = replay.device().cost_ns();
  row.retries = stats.num_alloc_retries;
  row.is_cut_off = settings.is_cut_off;
  if (!settings.capacity_bytes.has_value()) return row;
  row.feasible = row.ooms == 0;
  if (next == nullptr) return row;
  row.gets_past = replay.IsLive(next->requests.requests[next->failed].id);
  if (!*row.gets_past || !next->IsKnown()) return row;
  absl::StatusOr<ProjectedPart> projected = RunProjected(*next, settings, options, replay, sink);
  if (!projected.ok()) return projected.status();
  row.projected = *std::move(projected);
  return row;
}

absl::StatusOr<WhatIfRow> ReplayUnder(const trace::RequestTrace& requests, const std::vector<RequestSize>& sizes,
                                      const WhatIfSettings& settings, const policy::Options& options,
                                      const analyses::Continuation* next, replay::OpSink* sink) {
  absl::StatusOr<WhatIfRow> row = RunWhatIf(requests, settings, options, next, sink);
  if (row.ok()) row->risks = RisksOf(options, sizes, settings.memory_fraction);
  return row;
}

std::string BaselineConf(const policy::Options& baseline) {
  const absl::StatusOr<policy::Options> named =
      policy::ParseConf(baseline.conf, baseline.compat, policy::Keys::kAshlar);
  if (named.ok() && SameDecisions(*named, baseline)) return baseline.conf;
  const std::optional<SettingPoint> setting = SettingOf(baseline);
  return setting.has_value() ? JoinConfs(ConfOf(*setting), CarriedConf(baseline.conf)) : baseline.conf;
}

std::vector<std::string> StandardConfs() {
  return {"",
          "expandable_segments:True",
          "max_split_size_mb:64",
          "max_split_size_mb:128",
          "max_split_size_mb:256",
          "max_split_size_mb:512",
          "roundup_power2_divisions:4"};
}

absl::StatusOr<std::vector<WhatIfRow>> RunWhatIfs(const trace::RequestTrace& requests, const WhatIfSettings& settings,
                                                  const Progress& progress, const analyses::Continuation* next,
                                                  WhatIfWatch* watch) {
  const absl::StatusOr<std::vector<policy::Options>> others = OtherOptions(settings);
  if (!others.ok()) return others.status();
  const std::vector<RequestSize> sizes = SizesOf(requests);
  std::vector<absl::StatusOr<WhatIfRow>> replayed(others->size() + 1, absl::UnknownError("not replayed"));
  std::mutex progress_mutex;
  std::size_t begun = 0;
  const auto replay = [&](std::size_t i) -> absl::StatusOr<WhatIfRow> {
    if (progress) {
      const std::lock_guard<std::mutex> lock(progress_mutex);
      progress(absl::StrCat("what-ifs ", ++begun, " of ", replayed.size()));
    }
    replay::OpSink* sink = watch == nullptr ? nullptr : watch->Begin(i);
    absl::StatusOr<WhatIfRow> row =
        ReplayUnder(requests, sizes, settings, i == 0 ? settings.baseline : (*others)[i - 1], next, sink);
    if (watch == nullptr || !row.ok()) return row;
    if (absl::Status status = watch->End(i, *row); !status.ok()) return status;
    return row;
  };
  const std::size_t threads =
      std::min(ThreadCount(settings.threads), watch == nullptr ? replayed.size() : watch->MostAtOnce());
  RunInParallel(replayed.size(), threads, [&](std::size_t i) { replayed[i] = replay(i); });
  std::vector<WhatIfRow> rows;
  for (absl::StatusOr<WhatIfRow>& row : replayed) {
    if (!row.ok()) return row.status();
    if (rows.empty()) {
      row->is_baseline = true;
      row->conf = BaselineConf(settings.baseline);
    } else if (const std::optional<Risk> retries = RetryRisk(row->retries, rows.front().retries)) {
      row->risks.push_back(*retries);
    }
    rows.push_back(*std::move(row));
  }
  return rows;
}

}  // namespace ashlar::whatif
