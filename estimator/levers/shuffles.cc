#include "estimator/levers/shuffles.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "analyzer/replay/op_sink.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/whatif/parallel.h"
#include "analyzer/whatif/settings_space.h"
#include "analyzer/whatif/what_if.h"
#include "estimator/dry_run.h"
#include "estimator/run_observer.h"

namespace ashlar::estimate {
namespace {

constexpr Batching kBatchings[] = {Batching::kFixed, Batching::kDynamic, Batching::kUniform};
constexpr char kThresholdConf[] = "garbage_collection_threshold:0.8";

struct ShuffleSettings {
  policy::Options options;
  bool needs_fraction = false;
};

// What one shuffle came to under one setting.
struct Outcome {
  std::uint64_t reserved_bytes = 0;
  std::uint64_t failed_step = 0;  // 0: none failed
};

// One shuffle, batched one way.
struct Run {
  std::uint64_t padded_tokens = 0;
  std::uint64_t requested_bytes = 0;
  std::vector<Outcome> outcomes;  // in the order of the settings
};

// The settings of the estimate, then those that a sweep begins with, each that the version knows and that differs.
absl::StatusOr<std::vector<ShuffleSettings>> RunSettings(const Estimate& of) {
  const policy::Compat compat = CompatOf(of.run.torch_version);
  absl::StatusOr<policy::Options> asked = policy::ParseConf(of.run.conf, compat);
  if (!asked.ok()) return asked.status();
  std::vector<ShuffleSettings> out = {{*asked}};
  std::vector<std::string> confs = whatif::StandardConfs();
  if (of.run.capacity_bytes.has_value()) confs.emplace_back(kThresholdConf);
  for (const std::string& conf : confs) {
    absl::StatusOr<policy::Options> options =
        policy::ParseConf(whatif::JoinConfs(conf, whatif::CarriedConf(of.run.conf)), compat);
    if (!options.ok()) continue;
    const bool is_known = std::any_of(out.begin(), out.end(), [&](const ShuffleSettings& known) {
      return whatif::SameDecisions(known.options, *options);
    });
    if (!is_known) out.push_back({*std::move(options), conf == kThresholdConf});
  }
  return out;
}

absl::StatusOr<Outcome> ReplayUnder(const RequestList& list, const ShuffleSettings& settings,
                                    std::optional<std::uint64_t> capacity_bytes) {
  Outcome out;
  if (!settings.needs_fraction) {
    replay::RequestReplayOptions ample{settings.options, {}, {}};
    ample.device.capacity_bytes = replay::kAmpleBytes;
    replay::RequestReplay replay(std::move(ample));
    if (absl::Status status = replay.Run(list.requests()); !status.ok()) return status;
    out.reserved_bytes = static_cast<std::uint64_t>(replay.allocator().stats().reserved_bytes.all().peak);
    // What never reached the limit goes the same way with it.
    if (!capacity_bytes.has_value() || out.reserved_bytes <= *capacity_bytes) return out;
  }
  replay::RequestReplayOptions limited{settings.options, {}, {}};
  limited.device.capacity_bytes = *capacity_bytes;
  if (settings.needs_fraction) limited.memory_fraction = 1;
  replay::RequestReplay replay(std::move(limited));
  replay::FirstFailure failure;
  if (absl::Status status = replay.Run(list.requests(), &failure); !status.ok()) return status;
  if (failure.op().has_value()) {
    // 0 is no failure: one before the first step counts as the first's.
    out.failed_step = static_cast<std::uint64_t>(std::max<std::int64_t>(list.StepOf(*failure.op()), 1));
  }
  return out;
}

absl::StatusOr<Run> RunOne(const Estimate& of, const std::vector<ShuffleSettings>& settings, Batching batching,
                           std::uint64_t shuffle) {
  DryRunOptions options = of.run;
  options.batches = EpochOf(*of.lengths, batching, of.run.batch, shuffle);
  options.conf.clear();
  options.capacity_bytes.reset();
  RequestList list;
  const absl::StatusOr<DryRun> dry = RunDry(of.model, options, device::AddressOrder::kAscending, &list);
  if (!dry.ok()) return dry.status();
  Run out;
  out.requested_bytes = dry->peak_requested_bytes;
  const auto used = static_cast<std::size_t>(options.steps * options.accumulation);
  for (std::size_t i = 0; i < std::min(used, options.batches.size()); ++i) {
    out.padded_tokens = std::max(out.padded_tokens, static_cast<std::uint64_t>(options.batches[i].tokens));
  }
  for (const ShuffleSettings& setting : settings) {
    const absl::StatusOr<Outcome> outcome = ReplayUnder(list, setting, of.run.capacity_bytes);
    if (!outcome.ok()) return outcome.status();
    out.outcomes.push_back(*outcome);
  }
  return out;
}

template <typename Of>
Quantiles Collect(const std::vector<Run>& runs, std::size_t first, std::size_t count, const Of& of) {
  std::vector<std::uint64_t> values;
  for (std::size_t i = first; i < first + count; ++i) {
    if (const std::optional<std::uint64_t> value = of(runs[i]); value.has_value()) values.push_back(*value);
  }
  return QuantilesOf(std::move(values));
}

ShuffleRow RowOf(const Estimate& of, const ShuffleSettings& setting, std::size_t index, Batching batching,
                 const std::vector<Run>& runs, std::size_t first, std::size_t count) {
  ShuffleRow row;
  row.batching = batching;
  row.conf = setting.options.conf;
  row.is_asked = index == 0 && batching == of.batching;
  row.needs_fraction = setting.needs_fraction;
  const auto outcome = [index](const Run& run) -> const Outcome& { return run.outcomes[index]; };
  if (!setting.needs_fraction) {
    row.reserved =
        Collect(runs, first, count, [&](const Run& run) { return std::optional(outcome(run).reserved_bytes); });
  }
  if (!of.run.capacity_bytes.has_value()) return row;
  row.failed = 0;
  for (std::size_t i = first; i < first + count; ++i) *row.failed += outcome(runs[i]).failed_step > 0 ? 1 : 0;
  if (*row.failed > 0) {
    row.failed_step = Collect(runs, first, count, [&](const Run& run) {
      const std::uint64_t step = outcome(run).failed_step;
      return step > 0 ? std::optional(step) : std::nullopt;
    });
  }
  return row;
}

}  // namespace

Quantiles QuantilesOf(std::vector<std::uint64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](std::size_t percent) { return values[(values.size() * percent + 99) / 100 - 1]; };
  return {values.front(), at(50), at(95), values.back()};
}

absl::StatusOr<ShuffleResult> RunShuffles(const Estimate& of, const ShuffleOptions& options) {
  if (!of.no_dry_run.empty()) return absl::FailedPreconditionError(of.no_dry_run);
  if (!of.lengths.has_value()) return absl::FailedPreconditionError("shuffles need the lengths of the samples");
  const absl::StatusOr<std::vector<ShuffleSettings>> settings = RunSettings(of);
  if (!settings.ok()) return settings.status();
  const auto shuffles = static_cast<std::size_t>(options.shuffles);
  std::vector<Run> runs(std::size(kBatchings) * shuffles);
  std::mutex mutex;
  absl::Status failed;
  std::size_t done = 0;
  // Batches that are all padded alike do not depend on the order: the first stands for all.
  const std::size_t skipped = shuffles - 1;
  whatif::RunInParallel(runs.size() - skipped, whatif::ThreadCount(options.threads), [&](std::size_t job) {
    const std::size_t i = job == 0 ? 0 : job + skipped;
    absl::StatusOr<Run> run = RunOne(of, *settings, kBatchings[i / shuffles], options.seed + i % shuffles);
    const std::lock_guard<std::mutex> lock(mutex);
    if (run.ok()) {
      runs[i] = *std::move(run);
    } else {
      failed.Update(run.status());
    }
    if (options.progress) options.progress(++done, runs.size() - skipped);
  });
  if (!failed.ok()) return failed;
  std::fill(runs.begin() + 1, runs.begin() + static_cast<std::ptrdiff_t>(shuffles), runs.front());
  ShuffleResult out;
  out.shuffles = options.shuffles;
  out.steps = of.run.steps;
  out.epoch_steps = of.epoch_steps;
  for (std::size_t b = 0; b < std::size(kBatchings); ++b) {
    const std::size_t first = b * shuffles;
    out.batchings.push_back(
        {kBatchings[b], Collect(runs, first, shuffles, [](const Run& run) { return std::optional(run.padded_tokens); }),
         Collect(runs, first, shuffles, [](const Run& run) { return std::optional(run.requested_bytes); })});
    for (std::size_t s = 0; s < settings->size(); ++s) {
      out.rows.push_back(RowOf(of, (*settings)[s], s, kBatchings[b], runs, first, shuffles));
    }
  }
  return out;
}

}  // namespace ashlar::estimate
