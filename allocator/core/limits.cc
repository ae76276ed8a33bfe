// What may be reserved at most: a fraction of the device's memory, a number of bytes, and the limit that only tells.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/world.h"
#include "allocator/device/fork_count.h"

namespace ashlar::core {
namespace {

bool IsLate(policy::Compat compat) {
  return compat == policy::Compat::kTorch210 || compat == policy::Compat::kTorchLatest;
}

std::optional<std::uint64_t> Lower(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  if (a.has_value() && b.has_value()) return std::min(*a, *b);
  return a.has_value() ? a : b;
}

std::optional<std::uint64_t> SoftLimitBytes(const policy::Options& options, std::uint64_t total_bytes) {
  if (!options.soft_limit_fraction.has_value()) return options.soft_limit_bytes;
  const double bytes = *options.soft_limit_fraction * static_cast<double>(total_bytes);
  return Lower(options.soft_limit_bytes, static_cast<std::uint64_t>(bytes));
}

std::atomic<std::uint64_t> allocators_so_far{0};

device::Device* NotNull(device::Device* device) {
  if (device == nullptr) StopAtMisuse("CachingAllocator: its device is null: open one first (docs/library/devices.md)");
  return device;
}

}  // namespace

CachingAllocator::CachingAllocator(device::Device* device, policy::Options options)
    : id_(++allocators_so_far),
      device_(NotNull(device)),
      heap_(std::move(options)),
      total_bytes_(device->GetMemoryInfo().total_bytes),
      fork_count_(device::ForkCount()) {
  memory_limit_bytes_ = heap_.options().memory_limit_bytes;
  SetLimit();
  const std::optional<double> fraction = heap_.options().per_process_memory_fraction;
  if (fraction.has_value()) ASHLAR_CHECK(SetFraction(*fraction).ok());
  soft_limit_.Set(SoftLimitBytes(heap_.options(), total_bytes_));
  is_serial_.store(WantsSerial(), std::memory_order_relaxed);
  JoinForks();
}

absl::Status CachingAllocator::SetFraction(double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("a memory fraction of ", fraction, " is not in 0 to 1"));
  }
  const double limit = fraction * static_cast<double>(total_bytes_);
  if (!IsLate(options().compat)) {
    fraction_limit_bytes_ = static_cast<std::uint64_t>(limit);
  } else if (fraction < 1) {
    fraction_limit_bytes_ = static_cast<std::uint64_t>(std::llround(limit));
  } else {
    fraction_limit_bytes_.reset();
  }
  SetLimit();
  return absl::OkStatus();
}

void CachingAllocator::SetLimit() { limit_bytes_ = Lower(fraction_limit_bytes_, memory_limit_bytes_); }

absl::Status CachingAllocator::SetMemoryFraction(double fraction) {
  const World world(*this);
  absl::Status status = SetFraction(fraction);
  if (status.ok()) EmitFact(trace::FactKind::kLimit, limit_bytes_.value_or(trace::kNoLimit));
  world.ChooseMode(*this);
  return status;
}

void CachingAllocator::SetMemoryLimit(std::optional<std::uint64_t> bytes) {
  const World world(*this);
  memory_limit_bytes_ = bytes;
  SetLimit();
  EmitFact(trace::FactKind::kLimit, limit_bytes_.value_or(trace::kNoLimit));
  world.ChooseMode(*this);
}

std::optional<std::uint64_t> CachingAllocator::limit_bytes() const {
  const World world(*this);
  return limit_bytes_;
}

void CachingAllocator::SetSoftLimit(std::optional<std::uint64_t> bytes, SoftLimitCallback callback) {
  const World world(*this);
  soft_limit_.Set(bytes);
  soft_limit_.SetCallback(std::move(callback));
}

void CachingAllocator::SetSoftLimitCallback(SoftLimitCallback callback) {
  const World world(*this);
  soft_limit_.SetCallback(std::move(callback));
}

}  // namespace ashlar::core
