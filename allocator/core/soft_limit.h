// A limit on reserved memory that refuses nothing. It calls a function when it is crossed, so that the program can give
// memory back before the hard limit, or the device, refuses. Thread rule: not thread-safe; the allocator's exclusive
// section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_SOFT_LIMIT_H_
#define ASHLAR_ALLOCATOR_CORE_SOFT_LIMIT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "ashlar/soft_limit.h"

namespace ashlar::core {

class SoftLimit {
 public:
  void Set(std::optional<std::uint64_t> bytes) { bytes_ = bytes; }
  void SetCallback(SoftLimitCallback callback) { callback_ = std::move(callback); }

  // Whether a new segment would be a crossing to tell. None is told while another is: not to the thread that is told,
  // whose own requests would never end, nor to others, for whom it is the same crossing.
  bool IsCrossing(std::uint64_t reserved_bytes, std::uint64_t wanted_bytes) const {
    if (!bytes_.has_value() || callback_ == nullptr || is_telling_) return false;
    return reserved_bytes <= *bytes_ && wanted_bytes > *bytes_ - reserved_bytes;
  }

  // The call that tells a crossing, to be made without a lock and before End; nullptr = it is none.
  std::function<void()> Begin(std::uint64_t reserved_bytes, std::uint64_t wanted_bytes) {
    if (!IsCrossing(reserved_bytes, wanted_bytes)) return nullptr;
    is_telling_ = true;
    return [callback = callback_, crossing = SoftLimitCrossing{*bytes_, reserved_bytes, wanted_bytes}] {
      callback(crossing);
    };
  }
  void End() { is_telling_ = false; }

 private:
  std::optional<std::uint64_t> bytes_;
  SoftLimitCallback callback_;
  bool is_telling_ = false;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_SOFT_LIMIT_H_
