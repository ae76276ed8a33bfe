#include "analyzer/remedies/what_if.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar::remedies {
namespace {

constexpr double kWorthwhileShare = 0.02;

const WhatIfRow* Lowest(const std::vector<WhatIfRow>& rows, bool only_feasible) {
  const WhatIfRow* best = nullptr;
  for (const WhatIfRow& row : rows) {
    if (only_feasible && row.ooms > 0) continue;
    const auto key = [](const WhatIfRow& r) { return std::pair(r.peak_reserved_bytes, r.driver_calls); };
    if (best == nullptr || key(row) < key(*best)) best = &row;
  }
  return best;
}

std::string PasteLine(const std::string& conf) {
  return conf.empty() ? "unset PYTORCH_CUDA_ALLOC_CONF" : absl::StrCat("export PYTORCH_CUDA_ALLOC_CONF=", conf);
}

std::string NameOf(const std::string& conf) { return conf.empty() ? "the default settings" : conf; }

Advice AdviseForFailure(const std::vector<WhatIfRow>& rows) {
  const WhatIfRow& baseline = rows.front();
  const WhatIfRow* best = Lowest(rows, /*only_feasible=*/true);
  if (best != nullptr) {
    return {PasteLine(best->conf), absl::StrCat(NameOf(best->conf), " would have fitted: peak reserved ",
                                                FormatBytes(best->peak_reserved_bytes), ", no request fails")};
  }
  const auto fewest = std::min_element(rows.begin(), rows.end(),
                                       [](const WhatIfRow& a, const WhatIfRow& b) { return a.ooms < b.ooms; });
  std::string sentence = "none of these settings would have made it fit";
  if (fewest->ooms < baseline.ooms) {
    absl::StrAppend(&sentence, "; ", NameOf(fewest->conf), " comes closest (", fewest->ooms, " failed requests, not ",
                    baseline.ooms, ")");
  }
  return {std::nullopt, sentence};
}

}  // namespace

std::vector<std::string> StandardConfs() {
  return {"",
          "expandable_segments:True",
          "max_split_size_mb:64",
          "max_split_size_mb:128",
          "max_split_size_mb:256",
          "max_split_size_mb:512",
          "roundup_power2_divisions:4"};
}

absl::StatusOr<WhatIfRow> RunWhatIf(const trace::RequestTrace& requests, const WhatIfSettings& settings,
                                    const policy::Options& options) {
  replay::RequestReplayOptions replay_options{options, settings.device, settings.memory_fraction};
  replay_options.device.capacity_bytes = settings.capacity_bytes.value_or(kAmpleCapacityBytes);
  replay::RequestReplay replay(std::move(replay_options));
  if (absl::Status status = replay.Run(requests); !status.ok()) return status;
  const core::Stats& stats = replay.allocator().stats();
  WhatIfRow row;
  row.conf = options.conf;
  row.peak_reserved_bytes = static_cast<std::uint64_t>(stats.reserved_bytes.all().peak);
  row.peak_allocated_bytes = static_cast<std::uint64_t>(stats.allocated_bytes.all().peak);
  row.ooms = stats.num_ooms + stats.num_oom_rejections;
  row.retries = stats.num_alloc_retries;
  row.driver_calls = replay.device().calls().MemoryCalls();
  row.cost_ns = replay.device().cost_ns();
  if (settings.capacity_bytes.has_value()) row.feasible = row.ooms == 0;
  return row;
}

absl::StatusOr<std::vector<WhatIfRow>> RunWhatIfs(const trace::RequestTrace& requests, const WhatIfSettings& settings) {
  std::vector<WhatIfRow> rows;
  absl::StatusOr<WhatIfRow> baseline = RunWhatIf(requests, settings, settings.baseline);
  if (!baseline.ok()) return baseline.status();
  baseline->is_baseline = true;
  rows.push_back(*std::move(baseline));
  const policy::Compat compat = settings.baseline.compat;
  for (const std::string& conf : settings.confs.empty() ? StandardConfs() : settings.confs) {
    if (conf == settings.baseline.conf) continue;
    absl::StatusOr<policy::Options> options = policy::ParseConf(conf, compat);
    if (!options.ok()) {
      // 1.13 has no expandable segments: a standard row that the version does not know is left out.
      if (settings.confs.empty()) continue;
      return options.status();
    }
    options->free_order = settings.baseline.free_order;
    absl::StatusOr<WhatIfRow> row = RunWhatIf(requests, settings, *options);
    if (!row.ok()) return row.status();
    rows.push_back(*std::move(row));
  }
  return rows;
}

Advice Advise(const std::vector<WhatIfRow>& rows) {
  if (rows.empty()) return {};
  const WhatIfRow& baseline = rows.front();
  if (baseline.ooms > 0) return AdviseForFailure(rows);
  const WhatIfRow* best = Lowest(rows, /*only_feasible=*/true);
  const std::uint64_t saved = baseline.peak_reserved_bytes - best->peak_reserved_bytes;
  const double share = baseline.peak_reserved_bytes == 0
                           ? 0
                           : static_cast<double>(saved) / static_cast<double>(baseline.peak_reserved_bytes);
  if (best == &baseline || share < kWorthwhileShare) {
    return {std::nullopt, "none of these settings lowers the peak of reserved memory by 2 % or more"};
  }
  return {PasteLine(best->conf), absl::StrFormat("%s lowers the peak of reserved memory by %s (%.1f %%)",
                                                 NameOf(best->conf), FormatBytes(saved), share * 100)};
}

}  // namespace ashlar::remedies
