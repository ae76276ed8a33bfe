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
#include <optional>

#include "absl/status/status.h"
#include "allocator/core/soft_limit.h"
#include "allocator/policy/options.h"

namespace ashlar::core {

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
