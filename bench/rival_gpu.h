// Rivals of a GPU's own: cudaMalloc for every request, and cudaMallocAsync on a pool that keeps its memory, on the
// first device. Linked only where the toolkit is found (ASHLAR_BENCH_GPU).
//
//   if (absl::Status status = FindGpu(); !status.ok()) return Skip(status);
//   RivalGpu rival(GpuAllocator::kPool, /*is_measured=*/true);
//   rival.Free(rival.Allocate(300 * kKiB, Stream{0}), Stream{0});
//
// Streams are numbers; each is a CUDA stream that does not wait for the others. One thread.
#ifndef ASHLAR_BENCH_RIVAL_GPU_H_
#define ASHLAR_BENCH_RIVAL_GPU_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "allocator/base/units.h"

namespace ashlar::bench {

// Why there is none; one line.
absl::Status FindGpu();
// Whether as many bytes are free on it.
bool GpuHolds(std::uint64_t bytes);

enum class GpuAllocator : std::uint8_t { kMalloc, kPool };

class RivalGpu {
 public:
  // `is_measured`: peak_reserved_bytes is asked for afterwards, which costs cudaMalloc a look at the device a request.
  RivalGpu(GpuAllocator kind, bool is_measured);
  ~RivalGpu();  // no block is live
  RivalGpu(const RivalGpu&) = delete;
  RivalGpu& operator=(const RivalGpu&) = delete;

  // bytes > 0. 0 where the device has no memory left.
  std::uint64_t Allocate(std::uint64_t bytes, Stream stream);
  // `address` is that of a live block, `stream` the one it was asked for.
  void Free(std::uint64_t address, Stream stream);

  // What was gone from the device at most (cudaMalloc), or what the pool held at most.
  std::uint64_t peak_reserved_bytes() const;
  // The pool's are not to be seen from outside.
  std::optional<std::uint64_t> driver_calls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_RIVAL_GPU_H_
