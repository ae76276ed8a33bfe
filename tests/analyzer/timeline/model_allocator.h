// A tiny allocator that makes random histories whose every state is known: regions cut into chunks in plain vectors.
// It takes any free chunk that fits (not the best), so it shares nothing with the policy but the rule of how blocks
// are split, which it writes down itself.
#ifndef ASHLAR_TESTS_ANALYZER_TIMELINE_MODEL_ALLOCATOR_H_
#define ASHLAR_TESTS_ANALYZER_TIMELINE_MODEL_ALLOCATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::timeline {

enum class ChunkKind : std::uint8_t { kFree, kLive, kPending, kUnmapped };

struct Chunk {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t requested_bytes = 0;
  ChunkKind kind = ChunkKind::kFree;
};

// An ordinary segment, or a reservation whose unmapped chunks are holes.
struct Region {
  Stream stream{};
  PoolId pool;
  bool is_small = false;
  bool is_expandable = false;
  std::vector<Chunk> chunks;  // tile it
};

struct ModelOptions {
  std::uint64_t max_split_size_bytes = ~std::uint64_t{0};
  bool expandable_option = false;
};

class ModelAllocator {
 public:
  ModelAllocator(std::uint64_t seed, ModelOptions options) : rng_(seed), options_(options) { states_.push_back({}); }

  // One random act of the program or of the cache; a few events.
  void Act();

  const std::vector<trace::Event>& events() const { return events_; }
  // Before event i, or after the last for i = events().size(): maximal mapped ranges as segments, in address order.
  const std::vector<trace::SnapshotSegment>& StateBefore(std::size_t event) const { return states_[event]; }

 private:
  void Allocate();
  void RequestFree();
  void CompleteFree();
  void ReleaseRegion();
  void UnmapPages();
  bool TryPlace(std::uint64_t requested_bytes, Stream stream);
  void Grow(std::uint64_t rounded_bytes, Stream stream);
  void MapPages(Region& region, std::uint64_t rounded_bytes);
  void Emit(trace::Action action, std::uint64_t address, std::uint64_t size_bytes, Stream stream);
  std::vector<trace::SnapshotSegment> Now() const;
  std::vector<std::pair<std::size_t, std::size_t>> ChunksOf(ChunkKind kind) const;

  Rng rng_;
  ModelOptions options_;
  std::vector<Region> regions_;
  std::vector<trace::Event> events_;
  std::vector<std::vector<trace::SnapshotSegment>> states_;
};

}  // namespace ashlar::timeline

#endif  // ASHLAR_TESTS_ANALYZER_TIMELINE_MODEL_ALLOCATOR_H_
