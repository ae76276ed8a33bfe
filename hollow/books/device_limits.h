// The limits of a device's context (cudaLimit, CUlimit), and the memory that the stack takes: the driver keeps the
// local memory of every thread that can be resident, so each byte of stack above the default costs one for each of
// them. An H200 (132 multiprocessors of 2048 threads) took 17,439,916,032 bytes for a stack of 64 KiB in place of 1 KiB
// (docs/measurements/h200_questions.json: limits). The other limits took nothing before a kernel uses them.
//
//   DeviceLimits limits;
//   limits.Set(DeviceLimits::kStack, 64 << 10, resident_threads, device);   // or kOutOfMemory: nothing has changed
//
// Thread rule: not thread-safe.
#ifndef ASHLAR_HOLLOW_BOOKS_DEVICE_LIMITS_H_
#define ASHLAR_HOLLOW_BOOKS_DEVICE_LIMITS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "hollow/books/device_books.h"
#include "hollow/books/error.h"

namespace ashlar::hollow {

class DeviceLimits {
 public:
  static constexpr int kStack = 0;

  // kInvalidValue: there is no such limit.
  Error Get(int limit, std::size_t* value) const;
  Error Set(int limit, std::size_t value, std::uint64_t resident_threads, DeviceBooks& device);

 private:
  // CUDA's defaults for stack, printf's buffer, heap, the device runtime's two, L2 granularity and persisting L2.
  static constexpr std::array<std::size_t, 7> kDefaults = {1024, 1'048'576, 8'388'608, 2, 2048, 128, 0};

  std::array<std::size_t, kDefaults.size()> values_ = kDefaults;
  std::uint64_t charged_bytes_ = 0;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_BOOKS_DEVICE_LIMITS_H_
