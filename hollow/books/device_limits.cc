#include "hollow/books/device_limits.h"

#include <limits>

namespace ashlar::hollow {

Error DeviceLimits::Get(int limit, std::size_t* value) const {
  if (limit < 0 || limit >= static_cast<int>(values_.size())) return Error::kInvalidValue;
  *value = values_[static_cast<std::size_t>(limit)];
  return Error::kNone;
}

Error DeviceLimits::Set(int limit, std::size_t value, std::uint64_t resident_threads, DeviceBooks& device) {
  if (limit < 0 || limit >= static_cast<int>(values_.size())) return Error::kInvalidValue;
  if (limit == kStack) {
    const std::uint64_t more = value <= kDefaults[kStack] ? 0 : value - kDefaults[kStack];
    if (resident_threads > 0 && more > std::numeric_limits<std::uint64_t>::max() / resident_threads) {
      return Error::kOutOfMemory;
    }
    const std::uint64_t bytes = more * resident_threads;
    if (bytes > charged_bytes_) {
      const Error error = device.Unasked([&] { return device.Charge(bytes - charged_bytes_); });
      if (error != Error::kNone) return error;
    } else if (bytes < charged_bytes_) {
      device.Discharge(charged_bytes_ - bytes);
    }
    charged_bytes_ = bytes;
  }
  values_[static_cast<std::size_t>(limit)] = value;
  return Error::kNone;
}

}  // namespace ashlar::hollow
