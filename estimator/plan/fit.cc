#include "estimator/plan/fit.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "analyzer/whatif/parallel.h"

namespace ashlar::estimate {
namespace {

constexpr std::int64_t kLargestTried = 1 << 16;
constexpr std::int64_t kProbes = 4;  // on either side of the largest batch
constexpr std::size_t kRound = 32;   // sets between two looks at what fits

// Levers of this run that are the same training, pulled in the order of the table.
using Set = std::vector<std::size_t>;  // indices in Levers(), ascending

int PriceOf(const Set& set) {
  int out = 0;
  for (const std::size_t index : set) out += Levers()[index].price;
  return out;
}

struct Pulled {
  Variant variant;
  LeverSet set;
};

// nullopt where a lever finds nothing to change.
std::optional<Pulled> Pull(const Estimate& of, const Set& set) {
  Pulled out{VariantOf(of), {}};
  for (const std::size_t index : set) {
    const Lever& lever = Levers()[index];
    std::string flags = lever.pull(of, out.variant);
    if (flags.empty()) return std::nullopt;
    out.set.levers.push_back(&lever);
    out.set.flags.push_back(std::move(flags));
  }
  out.set.price = PriceOf(set);
  return out;
}

// One of each group or none, of those that do something here, by price.
std::vector<Set> SetsOf(const LeverResult& alone) {
  std::map<LeverGroup, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < Levers().size(); ++i) {
    const Lever& lever = Levers()[i];
    const bool is_here = std::any_of(alone.rows.begin(), alone.rows.end(),
                                     [&](const LeverRow& row) { return row.lever == &lever && row.saved_bytes > 0; });
    if (lever.price > 0 && is_here) groups[lever.group].push_back(i);
  }
  std::vector<Set> out = {{}};
  for (const auto& [group, levers] : groups) {
    const std::size_t before = out.size();
    for (const std::size_t lever : levers) {
      for (std::size_t i = 0; i < before; ++i) {
        Set next = out[i];
        next.push_back(lever);
        std::sort(next.begin(), next.end());
        out.push_back(std::move(next));
      }
    }
  }
  out.erase(out.begin());
  std::sort(out.begin(), out.end(), [](const Set& a, const Set& b) {
    return std::tuple(PriceOf(a), a.size(), a) < std::tuple(PriceOf(b), b.size(), b);
  });
  return out;
}

class FitSearch {
 public:
  FitSearch(const Estimate& of, const FitOptions& options) : of_(of), options_(options) {}

  // The first of the sets that fits, else the one that needs least.
  absl::Status Search(const std::vector<Set>& sets, Fit& out) {
    for (std::size_t begin = 0; begin < sets.size() && !out.cheapest.has_value(); begin += kRound) {
      const std::size_t count = std::min(kRound, sets.size() - begin);
      std::vector<std::optional<LeverSet>> measured(count);
      whatif::RunInParallel(count, whatif::ThreadCount(options_.threads),
                            [&](std::size_t i) { TrySet(sets[begin + i], measured[i]); });
      if (!failed_.ok()) return failed_;
      for (std::optional<LeverSet>& set : measured) {
        if (!set.has_value()) continue;
        ++out.sets_tried;
        if (set->measured.fits == true) {
          out.cheapest = std::move(set);
          out.least.reset();
          break;
        }
        if (!out.least.has_value() || set->measured.device_bytes < out.least->measured.device_bytes) {
          out.least = std::move(set);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  void TrySet(const Set& set, std::optional<LeverSet>& out) {
    std::optional<Pulled> pulled = Pull(of_, set);
    if (!pulled.has_value()) return;
    absl::StatusOr<Measured> measured = Measure(of_, pulled->variant);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (options_.progress) options_.progress(++done_);
    // Two levers that exclude each other in this model.
    if (absl::IsInvalidArgument(measured.status()) || absl::IsFailedPrecondition(measured.status())) return;
    if (!measured.ok()) {
      failed_.Update(measured.status());
      return;
    }
    pulled->set.measured = *measured;
    out = std::move(pulled->set);
  }

  const Estimate& of_;
  const FitOptions& options_;
  std::mutex mutex_;
  std::size_t done_ = 0;
  absl::Status failed_;
};

absl::StatusOr<LargestBatch> LargestWith(const Estimate& of, const LeverSet& set, std::size_t threads) {
  Variant variant = VariantOf(of);
  for (const Lever* lever : set.levers) lever->pull(of, variant);
  return FindLargestBatch(of, variant, threads);
}

}  // namespace

absl::StatusOr<LargestBatch> FindLargestBatch(const Estimate& of, const Variant& variant, std::size_t threads) {
  std::map<std::int64_t, Measured> tried;
  const auto measure = [&](std::int64_t batch) {
    Variant next = variant;
    next.run.batch = batch;
    Rebatch(of, next);
    return Measure(of, next);
  };
  const auto fits = [&](std::int64_t batch) -> absl::StatusOr<bool> {
    const absl::StatusOr<Measured> measured = measure(batch);
    if (!measured.ok()) return measured.status();
    tried[batch] = *measured;
    return *measured->fits;
  };
  std::int64_t low = 0, high = 1;  // low fits (0 always), high is tried next
  while (high <= kLargestTried) {
    const absl::StatusOr<bool> one = fits(high);
    if (!one.ok()) return one.status();
    if (!*one) break;
    low = high;
    high *= 2;
  }
  LargestBatch out;
  out.is_bounded = high <= kLargestTried;
  while (out.is_bounded && high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const absl::StatusOr<bool> one = fits(middle);
    if (!one.ok()) return one.status();
    (*one ? low : high) = middle;
  }
  out.batch = low;
  if (low > 0) out.device_bytes = tried[low].device_bytes;
  std::vector<std::int64_t> probes;
  for (std::int64_t i = 1; i <= kProbes; ++i) {
    for (const std::int64_t probe : {low - i, low * i / (kProbes + 1), low + i}) {
      const bool is_new = probe >= 1 && probe <= kLargestTried && !tried.contains(probe);
      if (is_new && std::find(probes.begin(), probes.end(), probe) == probes.end()) probes.push_back(probe);
    }
  }
  std::vector<absl::StatusOr<Measured>> results(probes.size());
  whatif::RunInParallel(probes.size(), whatif::ThreadCount(threads),
                        [&](std::size_t i) { results[i] = measure(probes[i]); });
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (!results[i].ok()) return results[i].status();
    tried[probes[i]] = *results[i];
  }
  out.tried = tried.size();
  for (const auto& [batch, measured] : tried) {
    if (*measured.fits != (batch <= low)) out.exceptions.push_back(batch);
  }
  return out;
}

absl::StatusOr<Fit> FindFit(const Estimate& of, const FitOptions& options) {
  if (!of.no_dry_run.empty()) return absl::FailedPreconditionError(of.no_dry_run);
  if (!of.run.capacity_bytes.has_value()) {
    return absl::FailedPreconditionError("how much memory is there? Give --device or a size");
  }
  const absl::StatusOr<LeverResult> alone = RunLevers(of, options.threads);
  if (!alone.ok()) return alone.status();
  Fit out;
  out.capacity_bytes = *of.capacity_bytes;
  out.asked = alone->asked;
  absl::StatusOr<LargestBatch> largest = FindLargestBatch(of, VariantOf(of), options.threads);
  if (!largest.ok()) return largest.status();
  out.largest = *std::move(largest);
  if (out.asked.fits == true) return out;
  FitSearch search(of, options);
  if (absl::Status status = search.Search(SetsOf(*alone), out); !status.ok()) return status;
  if (!out.cheapest.has_value()) return out;
  largest = LargestWith(of, *out.cheapest, options.threads);
  if (!largest.ok()) return largest.status();
  out.largest_cheapest = *std::move(largest);
  return out;
}

}  // namespace ashlar::estimate
