// Stream-ordered memory pools: what cudaMallocAsync takes and gives back.
//
// A pool obtains segments of its device in multiples of 32 MiB and gives blocks of 512 bytes' alignment out of them,
// the lowest address first. A freed block may be taken again at once: work of other streams is ordered after it, as the
// pool's default reuse policies make sure. Segments that hold nothing go back when something is synchronised, as long
// as more than the release threshold is reserved (cudaMemPoolAttrReleaseThreshold; 0 unless set). Source of the rules:
// CUDA C++ Programming Guide, "Stream Ordered Memory Allocator". The 32 MiB are what cudaMemPoolAttrReservedMemCurrent
// shows after a first small allocation on the drivers that people post figures of: they are assumed, and NVIDIA does
// not promise them. Thread rule: not thread-safe.
#ifndef ASHLAR_HOLLOW_BOOKS_POOLS_H_
#define ASHLAR_HOLLOW_BOOKS_POOLS_H_

#include <cstdint>
#include <map>

#include "allocator/device/address_space.h"
#include "hollow/books/allocations.h"
#include "hollow/books/device_books.h"
#include "hollow/books/error.h"

namespace ashlar::hollow {

// Bytes; "high" since the last reset.
struct PoolUse {
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
};

class Pool {
 public:
  // `max_bytes`: 0 is without limit.
  Pool(DeviceBooks& device, int ordinal, std::uint64_t id, std::uint64_t max_bytes)
      : device_(device), ordinal_(ordinal), id_(id), max_bytes_(max_bytes) {}

  Error Allocate(std::uint64_t size_bytes, Allocations& allocations, std::uint64_t* address);
  void Free(std::uint64_t address, Allocations& allocations);
  // Returns segments that hold nothing until no more than `keep_bytes` are reserved.
  void TrimTo(std::uint64_t keep_bytes);
  void Synchronized() { TrimTo(release_threshold); }

  PoolUse use;
  std::uint64_t release_threshold = 0;
  std::map<int, int> attributes;  // the reuse policies, by cudaMemPoolAttr; kept, not acted on
  std::map<int, int> access;      // other devices' flags

  int ordinal() const { return ordinal_; }
  std::uint64_t id() const { return id_; }
  bool is_empty() const { return blocks_.empty(); }

 private:
  struct Segment {
    std::uint64_t size_bytes = 0;
    std::uint64_t used_bytes = 0;
    device::AddressSpace free;
  };
  Error Grow(std::uint64_t size_bytes);

  DeviceBooks& device_;
  int ordinal_;
  std::uint64_t id_;
  std::uint64_t max_bytes_;
  std::map<std::uint64_t, Segment> segments_;
  std::map<std::uint64_t, std::uint64_t> blocks_;  // address -> rounded size
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_BOOKS_POOLS_H_
