#include "allocator/core/limits.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "allocator/base/check.h"

namespace ashlar::core {
namespace {

std::optional<std::uint64_t> Lower(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  if (a.has_value() && b.has_value()) return std::min(*a, *b);
  return a.has_value() ? a : b;
}

std::optional<std::uint64_t> SoftLimitBytes(const policy::Options& options, std::uint64_t total_bytes) {
  if (!options.soft_limit_fraction.has_value()) return options.soft_limit_bytes;
  const double bytes = *options.soft_limit_fraction * static_cast<double>(total_bytes);
  return Lower(options.soft_limit_bytes, static_cast<std::uint64_t>(bytes));
}

}  // namespace

Limits::Limits(const policy::Options& options, std::uint64_t total_bytes)
    : options_(options), total_bytes_(total_bytes), limit_bytes_(options.memory_limit_bytes) {
  const std::optional<double> fraction = options.per_process_memory_fraction;
  if (fraction.has_value()) ASHLAR_CHECK(SetFraction(*fraction).ok());
  soft_.Set(SoftLimitBytes(options, total_bytes));
}

absl::Status Limits::SetFraction(double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    return absl::InvalidArgumentError(absl::StrFormat("a memory fraction of %.15g is not in 0 to 1", fraction));
  }
  const double limit = fraction * static_cast<double>(total_bytes_);
  if (!policy::IsLate(options_.compat)) {
    fraction_bytes_ = static_cast<std::uint64_t>(limit);
  } else if (fraction < 1) {
    fraction_bytes_ = static_cast<std::uint64_t>(std::llround(limit));
  } else {
    fraction_bytes_.reset();
  }
  return absl::OkStatus();
}

std::optional<std::uint64_t> Limits::bytes() const { return Lower(fraction_bytes_, limit_bytes_); }

std::uint64_t Limits::SpareBytes(std::uint64_t reserved_bytes) const {
  const std::uint64_t most_bytes = std::min(total_bytes_, bytes().value_or(total_bytes_));
  return most_bytes - std::min(most_bytes, reserved_bytes);
}

bool Limits::AreExceeded(std::uint64_t reserved_bytes, std::uint64_t segment_bytes) const {
  const std::optional<std::uint64_t> most = bytes();
  return most.has_value() && reserved_bytes + segment_bytes > *most;
}

bool Limits::Reject(std::uint64_t reserved_bytes, std::uint64_t segment_bytes) const {
  if (!options_.throw_on_cudamalloc_oom) return false;
  const double fraction = options_.per_process_memory_fraction.value_or(1.0);
  const auto most = static_cast<std::uint64_t>(fraction * static_cast<double>(total_bytes_));
  return reserved_bytes + segment_bytes > most;
}

bool Limits::CollectGarbage() const { return options_.garbage_collection_threshold > 0 && bytes().has_value(); }

std::uint64_t Limits::GarbageBytes(std::uint64_t reserved_bytes) const {
  const auto threshold =
      static_cast<std::uint64_t>(options_.garbage_collection_threshold * static_cast<double>(*bytes()));
  return reserved_bytes > threshold ? reserved_bytes - threshold : 0;
}

}  // namespace ashlar::core
