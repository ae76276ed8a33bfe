// Stream-ordered memory pools: what cudaMallocAsync takes and gives back.
//
// A pool has one range of addresses, whose memory it obtains in chunks of 32 MiB, and gives blocks of 512 bytes'
// A pool has one range of addresses, whose memory it obtains in chunks of 32 MiB, and gives blocks of 512 bytes'
// lie over several chunks, with others:
//
//   | 40 MiB     | 40 MiB     |    |    96 MiB reserved, 80 used
//   | chunk   | chunk   | chunk   |
//
// A freed block may be taken again at once: work of other streams is ordered after it, as the pool's default reuse
// policies make sure. Chunks in which nothing lies go back when something is synchronised, as long as more than the
// release threshold is reserved (cudaMemPoolAttrReleaseThreshold; 0 unless set). Source of the rules: CUDA C++
// Programming Guide, "Stream Ordered Memory Allocator"; the chunks, and that the used bytes are those asked for, as an
// H200 shows them (docs/measurements/h200_questions.json: pools). Thread rule: not thread-safe.
#ifndef ASHLAR_HOLLOW_MODEL_POOLS_H_
#define ASHLAR_HOLLOW_MODEL_POOLS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "allocator/device/address_space.h"
#include "hollow/model/allocations.h"
#include "hollow/model/device_model.h"
#include "hollow/model/error.h"

namespace ashlar::hollow {

// Bytes; "high" since the last reset.
struct PoolUse {
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
};

class PoolModel {
 public:
  // `max_bytes`: 0 is without limit.
  PoolModel(DeviceModel& device, int ordinal, std::uint64_t id, std::uint64_t max_bytes)
      : device_(device), ordinal_(ordinal), id_(id), max_bytes_(max_bytes) {}

  Error Allocate(std::uint64_t size_bytes, Allocations& allocations, std::uint64_t* address);
  void Free(std::uint64_t address, Allocations& allocations);
  // Returns chunks that hold nothing until no more than `keep_bytes` are reserved.
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
  // The range of addresses, and what is free and has memory in it.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    device::AddressSpace free;
  };
  bool Reserve();
  // Memory for a block of so many bytes, at the place that needs the fewest chunks.
  Error Grow(std::uint64_t size_bytes);
  std::optional<std::uint64_t> CheapestPlace(std::uint64_t size_bytes) const;
  std::uint64_t MissingChunks(std::uint64_t address, std::uint64_t size_bytes) const;
  // A block begins or ends there: the bytes of it that lie in each chunk.
  void CountInChunks(std::uint64_t address, std::uint64_t size_bytes, bool is_taken);

  DeviceModel& device_;
  int ordinal_;
  std::uint64_t id_;
  std::uint64_t max_bytes_;
  std::optional<Range> range_;                     // nullopt: nothing was asked for yet
  std::map<std::uint64_t, std::uint64_t> chunks_;  // that have memory: where they begin -> bytes of blocks
  std::map<std::uint64_t, std::uint64_t> blocks_;  // address -> rounded size
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_POOLS_H_
