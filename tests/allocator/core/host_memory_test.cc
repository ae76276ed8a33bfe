// The allocator over host memory hands out memory: random programs write into their blocks, and what they wrote is
// there when they free them. No two blocks that are live, or wait for a stream, overlap.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/host_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/held_bytes.h"
#include "tests/allocator/core/program.h"

namespace ashlar::core {
namespace {

// Each word of a small block, and a word in 64 KiB of a larger one: that touches all its neighbours' borders, and not
// all of the machine's memory.
constexpr std::uint64_t kDenseBytes = 16 * kKiB;
constexpr std::uint64_t kStrideBytes = 64 * kKiB;

std::uint64_t WordAt(std::uint64_t tag, std::uint64_t offset) { return tag * 0x9e3779b97f4a7c15u ^ offset; }

// Calls visit(offset) for each 8-byte word to write: the first and last of the block among them.
template <typename Visit>
void ForEachWord(std::uint64_t size_bytes, Visit visit) {
  if (size_bytes < 8) return;
  const std::uint64_t step = size_bytes <= kDenseBytes ? 8 : kStrideBytes;
  for (std::uint64_t offset = 0; offset + 16 <= size_bytes; offset += step) visit(offset);
  visit(size_bytes - 8);
}

char* Memory(std::uint64_t address) { return reinterpret_cast<char*>(static_cast<std::uintptr_t>(address)); }

class WritingRun {
 public:
  explicit WritingRun(const Program& program)
      : program_(program),
        device_(Options(program)),
        allocator_(&device_, *policy::ParseConf(program.conf, program.compat, policy::Keys::kAshlar)) {}

  void Run() {
    for (std::size_t i = 0; i < program_.ops.size() && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE("op " + std::to_string(i));
      Step(program_.ops[i]);
      ASSERT_EQ(device_.used_bytes(), HeldBytes(Inspection(allocator_).heap()));
    }
    while (!live_.empty()) Free(live_.begin()->first);
    allocator_.EmptyCache();
    EXPECT_EQ(allocator_.pending_event_count(), 0u);
    EXPECT_TRUE(allocator_.TakeDeviceError().ok());
    EXPECT_TRUE(allocator_.Validate().ok()) << allocator_.Validate();
  }

  std::uint64_t words() const { return words_; }

 private:
  struct Live {
    Block* block = nullptr;
    std::uint64_t tag = 0;
  };

  static device::HostDeviceOptions Options(const Program& program) {
    device::HostDeviceOptions options;
    options.capacity_bytes = program.capacity_bytes;
    options.events_complete_immediately = program.events_complete_immediately;
    return options;
  }

  void Step(const Op& op) {
    if (op.kind == Op::kAlloc && !live_.contains(op.id)) return Allocate(op);
    if (op.kind == Op::kComplete) return device_.CompleteAllWork();
    if (op.kind == Op::kEmptyCache) return allocator_.EmptyCache();
    if (op.kind == Op::kConfigurePool) {
      return allocator_.ConfigurePool({0, op.pool}, (op.value & 1) != 0, (op.value & 2) != 0);
    }
    if (!live_.contains(op.id)) return;
    if (op.kind == Op::kRecord) return allocator_.RecordStream(live_[op.id].block, Stream{op.stream});
    if (op.kind == Op::kFree) Free(op.id);
  }

  void Allocate(const Op& op) {
    const absl::StatusOr<Block*> block = allocator_.Allocate(op.value, Stream{op.stream}, {0, op.pool});
    if (!block.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(block.status())) << block.status();
      return;
    }
    if (*block == nullptr) return;
    const Live live{*block, ++tag_};
    live_[op.id] = live;
    CheckApart(live);
    ForEachWord(op.value, [&](std::uint64_t offset) {
      const std::uint64_t word = WordAt(live.tag, offset);
      std::memcpy(Memory(live.block->address) + offset, &word, 8);
      ++words_;
    });
  }

  // Quadratic on purpose, and from the blocks that were handed out, not from the heap.
  void CheckApart(const Live& fresh) {
    for (const auto& [id, other] : live_) {
      if (other.block == fresh.block) continue;
      const bool is_apart = other.block->address + other.block->size_bytes <= fresh.block->address ||
                            fresh.block->address + fresh.block->size_bytes <= other.block->address;
      ASSERT_TRUE(is_apart) << "block " << fresh.tag << " overlaps block " << other.tag;
    }
  }

  void Free(std::uint32_t id) {
    const Live live = live_[id];
    live_.erase(id);
    std::uint64_t wrong = 0;
    ForEachWord(live.block->requested_bytes, [&](std::uint64_t offset) {
      std::uint64_t word = 0;
      std::memcpy(&word, Memory(live.block->address) + offset, 8);
      wrong += word == WordAt(live.tag, offset) ? 0 : 1;
    });
    ASSERT_EQ(wrong, 0u) << "words of block " << live.tag << " were overwritten";
    allocator_.Free(live.block);
  }

  const Program& program_;
  device::HostDevice device_;
  CachingAllocator allocator_;
  std::map<std::uint32_t, Live> live_;
  std::uint64_t tag_ = 0;
  std::uint64_t words_ = 0;
};

TEST(HostMemoryTest, RandomProgramsKeepWhatTheyWrite) {
  std::uint64_t words = 0;
  std::uint64_t expandable = 0;
  for (std::uint64_t seed = 700'000; seed < 700'048; ++seed) {
    Program program = RandomProgram(seed);
    program.capacity_bytes = std::min(program.capacity_bytes, 200 * kMiB);
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + program.conf);
    WritingRun run(program);
    run.Run();
    if (HasFailure()) return;
    words += run.words();
    if (program.conf.find("expandable_segments:True") != std::string::npos) ++expandable;
  }
  EXPECT_GT(words, 200'000u);
  EXPECT_GT(expandable, 10u);
}

// A whole block, each byte of it, across a reuse and a merge.
TEST(HostMemoryTest, BlocksAreWritableToTheirEnds) {
  for (const char* conf : {"", "expandable_segments:True"}) {
    device::HostDevice device({.capacity_bytes = 128 * kMiB});
    CachingAllocator allocator(&device, *policy::ParseConf(conf, policy::Compat::kTorch210));
    Block* first = *allocator.Allocate(3 * kMiB, Stream{0});
    Block* second = *allocator.Allocate(5 * kMiB, Stream{0});
    std::memset(Memory(first->address), 1, first->size_bytes);
    std::memset(Memory(second->address), 2, second->size_bytes);
    EXPECT_EQ(Memory(first->address)[first->size_bytes - 1], 1) << conf;
    EXPECT_EQ(Memory(second->address)[0], 2) << conf;
    allocator.Free(first);
    allocator.Free(second);
    Block* merged = *allocator.Allocate(8 * kMiB, Stream{0});
    std::memset(Memory(merged->address), 3, merged->size_bytes);
    EXPECT_EQ(Memory(merged->address)[merged->size_bytes - 1], 3) << conf;
  }
}

}  // namespace
}  // namespace ashlar::core
