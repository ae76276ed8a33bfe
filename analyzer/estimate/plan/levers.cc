#include "analyzer/estimate/plan/levers.h"

#include <algorithm>
#include <utility>

#include "analyzer/estimate/dry_run.h"
#include "analyzer/remedies/parallel.h"

namespace ashlar::estimate {
namespace {

// What one lever came to, until all are done.
struct Attempt {
  std::string flags;
  absl::StatusOr<Measured> measured = absl::FailedPreconditionError("nothing to change in this run");
};

Attempt Try(const Estimate& of, const Lever& lever) {
  Attempt out;
  Variant variant = VariantOf(of);
  out.flags = lever.pull(of, variant);
  if (!out.flags.empty()) out.measured = Measure(of, variant);
  return out;
}

}  // namespace

Variant VariantOf(const Estimate& of) { return {of.run, of.batching, of.lengths}; }

void Rebatch(const Estimate& of, Variant& variant) {
  if (!variant.lengths.has_value()) return;
  variant.run.batches = EpochOf(*variant.lengths, variant.batching, variant.run.batch, of.seed);
}

absl::StatusOr<Measured> Measure(const Estimate& of, const Variant& variant) {
  Measured out;
  const std::optional<std::uint64_t> capacity = of.run.capacity_bytes;
  if (capacity.has_value()) out.fits = true;
  for (const device::AddressOrder order : {device::AddressOrder::kAscending, device::AddressOrder::kDescending}) {
    DryRunOptions run = variant.run;
    run.capacity_bytes.reset();
    const absl::StatusOr<DryRun> ample = RunDry(of.model, run, order);
    if (!ample.ok()) return ample.status();
    out.device_bytes = std::max(out.device_bytes, of.DeviceBytes(*ample));
    // What never reached the limit goes the same way with it; what is needed at once beyond it cannot fit.
    if (!capacity.has_value() || ample->peak_reserved_bytes <= *capacity || out.fits == false) continue;
    if (ample->peak_requested_bytes > *capacity) {
      out.fits = false;
      continue;
    }
    run.capacity_bytes = capacity;
    const absl::StatusOr<DryRun> limited = RunDry(of.model, run, order);
    if (!limited.ok()) return limited.status();
    out.fits = limited->fits;
  }
  return out;
}

absl::StatusOr<LeverResult> RunLevers(const Estimate& of, std::size_t threads) {
  if (!of.no_dry_run.empty()) return absl::FailedPreconditionError(of.no_dry_run);
  const absl::Span<const Lever> levers = Levers();
  std::vector<Attempt> attempts(levers.size());
  absl::StatusOr<Measured> asked;
  remedies::RunInParallel(levers.size() + 1, remedies::ThreadCount(threads), [&](std::size_t i) {
    if (i == levers.size()) {
      asked = Measure(of, VariantOf(of));
    } else {
      attempts[i] = Try(of, levers[i]);
    }
  });
  if (!asked.ok()) return asked.status();
  LeverResult out;
  out.asked = *asked;
  for (std::size_t i = 0; i < levers.size(); ++i) {
    Attempt& attempt = attempts[i];
    if (!attempt.measured.ok()) {
      out.skipped.push_back({&levers[i], std::string(attempt.measured.status().message())});
      continue;
    }
    const auto saved =
        static_cast<std::int64_t>(asked->device_bytes) - static_cast<std::int64_t>(attempt.measured->device_bytes);
    out.rows.push_back({&levers[i], std::move(attempt.flags), *attempt.measured, saved});
  }
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const LeverRow& a, const LeverRow& b) { return a.saved_bytes > b.saved_bytes; });
  return out;
}

}  // namespace ashlar::estimate
