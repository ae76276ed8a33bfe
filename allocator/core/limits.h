// Limits on what may be reserved: a fraction of the device's memory, a number of bytes, the settings' own refusal, and
// the soft limit that refuses nothing.
//
//   Limits limits(options, device.GetMemoryInfo().total_bytes);
//   absl::Status status = limits.SetFraction(0.5);
//   if (limits.AreExceeded(reserved_bytes, segment_bytes)) ...   // out of memory before the device is asked
//
// Pure values: no device, no clock. Units: bytes. Thread rule: not thread-safe; the allocator's exclusive section
// guards it, but for total_bytes, which never changes.
#ifndef ASHLAR_ALLOCATOR_CORE_LIMITS_H_
#define ASHLAR_ALLOCATOR_CORE_LIMITS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "allocator/policy/options.h"
#include "ashlar/soft_limit.h"

namespace ashlar::core {

// A limit on reserved memory that refuses nothing. It calls a function when it is crossed, so that the program can give
// memory back before the hard limit, or the device, refuses. Thread rule: not thread-safe; the allocator's exclusive
// section guards it.
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

class Limits {
 public:
  // With the limits that the options ask for. The options outlive this.
  Limits(const policy::Options& options, std::uint64_t total_bytes);

  // Of the device, as it said when the allocator was made.
  std::uint64_t total_bytes() const { return total_bytes_; }

  // InvalidArgument where the fraction is not in [0, 1].
  absl::Status SetFraction(double fraction);
  // Beside the fraction; nothing = no such limit.
  void SetBytes(std::optional<std::uint64_t> bytes) { limit_bytes_ = bytes; }
  // The lower of the two, if there is one.
  std::optional<std::uint64_t> bytes() const;

  // What may be reserved besides, as far as this allocator knows: other programs take from the device too.
  std::uint64_t SpareBytes(std::uint64_t reserved_bytes) const;
  // Whether a new segment would take what is reserved above bytes().
  bool AreExceeded(std::uint64_t reserved_bytes, std::uint64_t segment_bytes) const;
  // throw_on_cudamalloc_oom: whether the segment is refused before the driver is asked.
  bool Reject(std::uint64_t reserved_bytes, std::uint64_t segment_bytes) const;

  // Whether garbage is collected, so that searches make what is free older.
  bool CollectGarbage() const;
  // How much garbage is to be collected before memory is obtained; only where CollectGarbage().
  std::uint64_t GarbageBytes(std::uint64_t reserved_bytes) const;

  SoftLimit& soft() { return soft_; }
  const SoftLimit& soft() const { return soft_; }

 private:
  const policy::Options& options_;
  const std::uint64_t total_bytes_;
  std::optional<std::uint64_t> fraction_bytes_;
  std::optional<std::uint64_t> limit_bytes_;
  SoftLimit soft_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_LIMITS_H_
