// What fixed workloads cost, as exact counts: device calls, segments, blocks cut and merged, locks, searches, retries
// and peaks. A change of any number is a change of behaviour or of speed and has to be meant.
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

struct Cost {
  std::uint64_t segment_alloc, segment_free, map_pages, unmap_pages;
  std::uint64_t record_event, query_event, synchronize;
  std::uint64_t splits, merges;
  std::uint64_t sections, locks, probes;
  std::uint64_t retries, ooms;
  std::uint64_t peak_reserved_mib, peak_allocated_mib;  // rounded up
  bool operator==(const Cost&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Cost& c) {
  return out << absl::StrCat("{", c.segment_alloc, ", ", c.segment_free, ", ", c.map_pages, ", ", c.unmap_pages, ", ",
                             c.record_event, ", ", c.query_event, ", ", c.synchronize, ", ", c.splits, ", ", c.merges,
                             ", ", c.sections, ", ", c.locks, ", ", c.probes, ", ", c.retries, ", ", c.ooms, ", ",
                             c.peak_reserved_mib, ", ", c.peak_allocated_mib, "}");
}

// Runs a workload and counts.
class Meter {
 public:
  Meter(const std::string& conf, std::uint64_t capacity_bytes)
      : device_(DeviceOptions(capacity_bytes)),
        allocator_(&device_, *policy::ParseConf(conf, policy::Compat::kTorch210)) {}

  Block* Allocate(std::uint64_t bytes, std::uint64_t stream = 0) {
    return allocator_.Allocate(bytes, Stream{stream}).value_or(nullptr);
  }
  void Free(Block* block) { allocator_.Free(block); }
  void Use(Block* block, std::uint64_t stream) { allocator_.RecordStream(block, Stream{stream}); }
  void FinishWork() { device_.CompleteAllWork(); }
  void EmptyCache() { allocator_.EmptyCache(); }

  Cost Result() const {
    const Inspection::PathCosts costs = Inspection(allocator_).path_costs();
    const device::DeviceCalls& calls = device_.calls();
    const Stats& stats = allocator_.stats();
    return {calls.segment_alloc,
            calls.segment_free,
            calls.map_pages,
            calls.unmap_pages,
            calls.record_event,
            calls.query_event,
            calls.synchronize,
            costs.cuts,
            costs.joins,
            costs.sections,
            costs.thread_cache_locks,
            costs.index_probes,
            stats.num_alloc_retries,
            stats.num_ooms,
            Mebibytes(stats.reserved_bytes),
            Mebibytes(stats.allocated_bytes)};
  }

 private:
  static device::SimDeviceOptions DeviceOptions(std::uint64_t capacity_bytes) {
    device::SimDeviceOptions options;
    options.capacity_bytes = capacity_bytes;
    return options;
  }
  static std::uint64_t Mebibytes(const PoolStat& stat) {
    return (static_cast<std::uint64_t>(stat.all().peak) + kMiB - 1) / kMiB;
  }
  device::SimDevice device_;
  CachingAllocator allocator_;
};

// 1,000 times one block of 4 KiB: one segment; from the second time on the newest block comes back, and nothing is
// searched, cut or joined.
void AllocateAndFree(Meter& meter) {
  for (int i = 0; i < 1000; ++i) meter.Free(meter.Allocate(4096));
}

// 100 times 64 blocks of mixed sizes, the newest freed first.
void NewestFreedFirst(Meter& meter) {
  for (int round = 0; round < 100; ++round) {
    std::vector<Block*> blocks;
    for (std::uint64_t i = 0; i < 64; ++i) blocks.push_back(meter.Allocate(512 << (i * 5 % 14)));
    for (; !blocks.empty(); blocks.pop_back()) meter.Free(blocks.back());
  }
}

// The same, the oldest freed first.
void OldestFreedFirst(Meter& meter) {
  for (int round = 0; round < 100; ++round) {
    std::vector<Block*> blocks;
    for (std::uint64_t i = 0; i < 64; ++i) blocks.push_back(meter.Allocate(512 << (i * 5 % 14)));
    for (Block* block : blocks) meter.Free(block);
  }
}

// Ten training steps: activations in order, freed in reverse while gradients come, the same sizes each step.
void TrainingSteps(Meter& meter) {
  std::vector<Block*> weights;
  for (std::uint64_t layer = 0; layer < 24; ++layer) weights.push_back(meter.Allocate((4 + layer % 3) * kMiB + 4096));
  for (int step = 0; step < 10; ++step) {
    std::vector<Block*> activations;
    for (std::uint64_t layer = 0; layer < 24; ++layer) {
      Block* scratch = meter.Allocate((9 + layer % 5) * kMiB);
      activations.push_back(meter.Allocate((3 + layer % 4) * kMiB + 512 * layer));
      meter.Free(scratch);
    }
    std::vector<Block*> gradients;
    for (std::uint64_t layer = 24; layer-- > 0;) {
      gradients.push_back(meter.Allocate((4 + layer % 3) * kMiB + 4096));
      meter.Free(activations[layer]);
    }
    for (Block* gradient : gradients) meter.Free(gradient);
  }
}

// Random sizes with about 200 live blocks on a device that is just too small.
void RandomReplace(Meter& meter) {
  Rng rng(42);
  std::vector<Block*> live(200, nullptr);
  for (int i = 0; i < 4000; ++i) {
    Block*& slot = live[rng.Below(live.size())];
    meter.Free(slot);
    slot = meter.Allocate(rng.Below(4) == 0 ? rng.Between(kMiB, 24 * kMiB) : rng.Between(1, kMiB));
  }
}

// A second stream uses every block; work finishes every 16th round. Then the cache is emptied.
void TwoStreams(Meter& meter) {
  for (int i = 0; i < 256; ++i) {
    Block* block = meter.Allocate(3 * kMiB);
    meter.Use(block, 7);
    meter.Free(block);
    if (i % 16 == 15) meter.FinishWork();
  }
  meter.EmptyCache();
}

struct Case {
  const char* name;
  void (*workload)(Meter&);
  const char* conf;
  std::uint64_t capacity_mib;
  Cost cost;
};

TEST(CostTest, FixedWorkloadsCostExactlyThis) {
  // segments: made, freed; pages: mapped, unmapped; events: recorded, queried, synchronised; blocks: cut, joined;
  // Exclusive sections, thread cache locks, bins of free sets looked at; retries, out of memory; peaks in MiB:
  // reserved, allocated.
  const Case cases[] = {
      // clang-format off
      {"allocate and free", AllocateAndFree, "", 1024, {1, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2002, 1, 0, 0, 2, 1}},
      {"allocate and free", AllocateAndFree, "expandable_segments:True", 1024, {0, 0, 1, 0, 0, 0, 0, 3, 2, 2, 2002, 1, 0, 0, 2, 1}},
      {"newest freed first", NewestFreedFirst, "", 1024, {7, 0, 0, 0, 0, 0, 0, 6000, 6000, 65, 12865, 6460, 0, 0, 50, 34}},
      {"newest freed first", NewestFreedFirst, "expandable_segments:True", 1024, {0, 0, 7, 0, 0, 0, 0, 6405, 6403, 65, 12865, 6460, 0, 0, 50, 34}},
      {"oldest freed first", OldestFreedFirst, "", 1024, {7, 0, 0, 0, 0, 0, 0, 6000, 6000, 93, 12893, 6460, 0, 0, 50, 34}},
      {"oldest freed first", OldestFreedFirst, "expandable_segments:True", 1024, {0, 0, 7, 0, 0, 0, 0, 6405, 6403, 65, 12865, 6460, 0, 0, 50, 34}},
      {"training steps", TrainingSteps, "", 4096, {16, 0, 0, 0, 0, 0, 0, 503, 483, 92, 1556, 820, 0, 0, 300, 255}},
      {"training steps", TrainingSteps, "max_split_size_mb:32", 4096, {16, 0, 0, 0, 0, 0, 0, 503, 483, 92, 1556, 820, 0, 0, 300, 255}},
      {"training steps", TrainingSteps, "expandable_segments:True", 4096, {0, 0, 14, 0, 0, 0, 0, 738, 713, 75, 1539, 816, 0, 0, 280, 244}},
      {"training steps", TrainingSteps, "roundup_power2_divisions:4", 4096, {19, 0, 0, 0, 0, 0, 0, 514, 490, 92, 1556, 819, 0, 0, 346, 293}},
      {"random replace", RandomReplace, "", 900, {189, 50, 0, 0, 0, 0, 0, 3406, 3160, 687, 8465, 4631, 36, 25, 900, 796}},
      {"random replace", RandomReplace, "max_split_size_mb:21", 900, {350, 150, 0, 0, 0, 0, 0, 3366, 3137, 978, 8764, 4897, 39, 16, 900, 835}},
      {"random replace", RandomReplace, "expandable_segments:True", 900, {0, 0, 100, 17, 0, 0, 13, 4023, 3728, 440, 8225, 4584, 20, 19, 898, 794}},
      {"two streams", TwoStreams, "", 1024, {3, 3, 0, 0, 256, 480, 16, 256, 256, 514, 1027, 255, 0, 0, 60, 3}},
      {"two streams", TwoStreams, "expandable_segments:True", 1024, {0, 0, 3, 3, 256, 480, 17, 259, 259, 514, 1027, 255, 0, 0, 60, 3}},
      // clang-format on
  };
  for (const Case& c : cases) {
    Meter meter(c.conf, c.capacity_mib * kMiB);
    c.workload(meter);
    EXPECT_EQ(meter.Result(), c.cost) << c.name << " with \"" << c.conf << "\"";
  }
}

}  // namespace
}  // namespace ashlar::core
