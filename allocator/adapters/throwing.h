// The allocator for code that throws: PyTorch's pluggable allocators, RMM and std::pmr want an exception where a
// request fails, and catch std::bad_alloc.
//
//   try {
//     const std::uint64_t address = adapters::AllocateOrThrow(allocator, 300 * kMiB, stream);
//   } catch (const ashlar::OutOfMemoryError& error) {
//     std::cerr << error.what();   // at most 12 lines: allocator/core/oom_report.h
//   }
//
// Threads: as core::CachingAllocator.
#ifndef ASHLAR_ALLOCATOR_ADAPTERS_THROWING_H_
#define ASHLAR_ALLOCATOR_ADAPTERS_THROWING_H_

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/core/caching_allocator.h"

namespace ashlar {

// The device's memory is not enough; nothing else is wrong. Copies never throw.
class OutOfMemoryError : public std::bad_alloc {
 public:
  explicit OutOfMemoryError(const absl::Status& status)
      : text_(std::make_shared<const std::string>(status.message())) {}

  const char* what() const noexcept override { return text_->c_str(); }

 private:
  std::shared_ptr<const std::string> text_;
};

// Any other failure: the device's own, by call, name and text.
class DeviceError : public std::runtime_error {
 public:
  explicit DeviceError(const absl::Status& status) : std::runtime_error(status.ToString()) {}
};

namespace adapters {

// `status` is not OK.
[[noreturn]] inline void Throw(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) throw OutOfMemoryError(status);
  throw DeviceError(status);
}

inline std::uint64_t AllocateOrThrow(core::CachingAllocator& allocator, std::uint64_t bytes, Stream stream,
                                     PoolId pool = {}) {
  const absl::StatusOr<std::uint64_t> address = allocator.AllocateAddress(bytes, stream, pool);
  if (!address.ok()) Throw(address.status());
  return *address;
}

}  // namespace adapters
}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_ADAPTERS_THROWING_H_
