// Functions that throw in place of returning a status. RMM, std::pmr and PyTorch's pluggable allocators want an
// exception where a request fails, and catch std::bad_alloc.
//
//   try {
//     const ashlar::Block block = ashlar::AllocateOrThrow(allocator, 300 * ashlar::kMiB, stream);
//   } catch (const ashlar::OutOfMemoryError& error) {
//     std::cerr << error.what();   // at most 12 lines: where every byte is
//   }
//
// Threads: as Allocator. A program that is compiled without exceptions may include this header; it has nothing then.
#ifndef ASHLAR_ERRORS_H_
#define ASHLAR_ERRORS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/allocator.h"
#include "ashlar/exceptions.h"
#include "ashlar/units.h"

#ifdef __cpp_exceptions

namespace ashlar {

using DeviceError = Error;  // its older name

// `status` is not OK.
[[noreturn]] inline void Throw(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) throw OutOfMemoryError(std::string(status.message()));
  throw Error(status.ToString());
}

inline Block AllocateOrThrow(Allocator& allocator, std::uint64_t bytes, Stream stream, PoolId pool = {}) {
  const absl::StatusOr<Block> block = allocator.Allocate(bytes, stream, pool);
  if (!block.ok()) Throw(block.status());
  return *block;
}

}  // namespace ashlar

#endif  // __cpp_exceptions

#endif  // ASHLAR_ERRORS_H_
