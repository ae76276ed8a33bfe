// Names of blocks that are gone: a block is freed, its record goes through every state that it can reach without being
// handed out again, and each old name for it is told: by the block the process stops, by the address nothing happens.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/cuda_device.h"
#include "gtest/gtest.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::core {
namespace {

constexpr PoolId kStalePool{7, 0};

struct StaleName {
  Block* block = nullptr;  // or
  std::uint64_t address = 0;
};

class QuietSink final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event&, std::uint64_t) override {}
};

// A program on a fake of CUDA that names its blocks in one of the two ways.
class StaleProgram {
 public:
  enum class Way : std::uint8_t { kBlock, kAddress };

  StaleProgram(Way way, bool is_recorded, const std::string& conf)
      : way_(way), allocator_(Device(), *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar)) {
    if (is_recorded) allocator_.SetSink(&sink_);
  }
  ~StaleProgram() { allocator_.SetSink(nullptr); }

  CachingAllocator& allocator() { return allocator_; }
  device::FakeCuda& cuda() { return cuda_; }

  StaleName Get(std::uint64_t bytes, Stream stream = Stream{0}, PoolId pool = {}) {
    if (way_ == Way::kBlock) return {*allocator_.Allocate(bytes, stream, pool), 0};
    return {nullptr, *allocator_.AllocateAddress(bytes, stream, pool)};
  }
  void Drop(const StaleName& name) {
    if (way_ == Way::kBlock) return allocator_.Free(name.block);
    EXPECT_TRUE(allocator_.FreeAddress(name.address));
  }

 private:
  device::Device* Device() {
    cuda_.MakeCurrent(cuda_.ContextOf(0));
    device_ = *device::CudaDevice::Open({.ordinal = 0});
    return device_.get();
  }

  const Way way_;
  device::FakeCuda cuda_{{.capacity_bytes = 64 * kMiB}};
  std::unique_ptr<device::CudaDevice> device_;
  QuietSink sink_;
  CachingAllocator allocator_;
};

struct StaleState {
  const char* name;
  const char* conf;
  std::function<std::vector<StaleName>(StaleProgram&)> reach;  // the names that are nobody's then
};

std::vector<StaleName> FreedOfFour(StaleProgram& program, const std::vector<std::size_t>& order) {
  std::vector<StaleName> live;
  for (int i = 0; i < 4; ++i) live.push_back(program.Get(2 * kMiB));
  std::vector<StaleName> freed;
  for (const std::size_t i : order) {
    program.Drop(live[i]);
    freed.push_back(live[i]);
  }
  return freed;
}

std::vector<StaleName> FreedAlone(StaleProgram& program, const StaleName& name) {
  program.Drop(name);
  return {name};
}

const std::vector<StaleState>& StaleStates() {
  static const auto& states = *new std::vector<StaleState>{
      {"free between live blocks", "", [](StaleProgram& program) { return FreedOfFour(program, {1}); }},
      {"merged into the block before it", "", [](StaleProgram& program) { return FreedOfFour(program, {0, 1}); }},
      {"merged with the block behind it", "", [](StaleProgram& program) { return FreedOfFour(program, {2, 1}); }},
      {"merged with both", "", [](StaleProgram& program) { return FreedOfFour(program, {2, 0, 1}); }},
      {"the whole segment free", "", [](StaleProgram& program) { return FreedOfFour(program, {0, 2, 3, 1}); }},
      {"its segment returned", "",
       [](StaleProgram& program) {
         const std::vector<StaleName> names = FreedOfFour(program, {0, 2, 3, 1});
         program.allocator().EmptyCache();
         return names;
       }},
      {"its record used for what is free beside other blocks", "",
       [](StaleProgram& program) {
         std::vector<StaleName> names = FreedOfFour(program, {0, 2, 3, 1});
         program.allocator().EmptyCache();
         // The next stream gets the records of the one that is gone: one for its block, one for the rest.
         const StaleName live = program.Get(2 * kMiB, Stream{4});
         names.erase(
             std::remove_if(names.begin(), names.end(),
                            [&](const StaleName& name) { return name.block != nullptr && name.block == live.block; }),
             names.end());
         return names;
       }},
      {"its private pool gone", "",
       [](StaleProgram& program) {
         const std::vector<StaleName> names = FreedAlone(program, program.Get(2 * kMiB, Stream{0}, kStalePool));
         program.allocator().ReleasePool(kStalePool);
         program.allocator().EmptyCache();
         return names;
       }},
      {"its private pool gone, another there", "",
       [](StaleProgram& program) {
         program.Get(2 * kMiB);
         const std::vector<StaleName> names = FreedAlone(program, program.Get(2 * kMiB, Stream{0}, kStalePool));
         program.allocator().ReleasePool(kStalePool);
         program.allocator().EmptyCache();
         program.Get(20 * kMiB);  // where the pool was
         program.Get(2 * kMiB, Stream{5}, {8, 0});
         return names;
       }},
      {"unmapped", "expandable_segments:True",
       [](StaleProgram& program) {
         program.Get(2 * kMiB);
         const std::vector<StaleName> names = FreedAlone(program, program.Get(40 * kMiB));
         program.allocator().EmptyCache();
         return names;
       }},
      {"its reservation released", "expandable_segments:True",
       [](StaleProgram& program) {
         const std::vector<StaleName> names = FreedAlone(program, program.Get(40 * kMiB));
         program.allocator().EmptyCache();
         return names;
       }},
      {"waiting for another stream", "borrow_across_streams:True",
       [](StaleProgram& program) {
         FreedAlone(program, program.Get(40 * kMiB, Stream{1}));
         return FreedAlone(program, program.Get(40 * kMiB, Stream{2}));  // borrowed: it waits for stream 2
       }},
      {"waiting for a capture to end", "borrow_across_streams:True",
       [](StaleProgram& program) {
         FreedAlone(program, program.Get(40 * kMiB, Stream{1}));
         const StaleName borrowed = program.Get(40 * kMiB, Stream{2});
         EXPECT_TRUE(program.allocator().BeginPool(kStalePool, [](Stream) { return true; }, RouteKind::kCapture).ok());
         return FreedAlone(program, borrowed);
       }},
      {"of a device that was reset", "",
       [](StaleProgram& program) {
         const std::vector<StaleName> names = {program.Get(2 * kMiB), program.Get(2 * kMiB), program.Get(2 * kMiB)};
         program.Drop(names[0]);
         program.cuda().ResetDevice(0, true);
         EXPECT_TRUE(absl::IsDataLoss(program.allocator().Allocate(40 * kMiB, Stream{0}).status()));
         program.Drop(names[1]);
         program.Drop(names[2]);
         return names;
       }},
  };
  return states;
}

// The states in both modes: arenas serve by themselves, or everything goes through the exclusive section.
void ForEachStaleState(StaleProgram::Way way, const std::function<void(StaleProgram&, const StaleName&)>& check) {
  for (const StaleState& state : StaleStates()) {
    for (const bool is_recorded : {false, true}) {
      SCOPED_TRACE(std::string(state.name) + (is_recorded ? ", recorded" : ""));
      StaleProgram program(way, is_recorded, state.conf);
      const std::vector<StaleName> names = state.reach(program);
      const std::int64_t live = program.allocator().stats().allocation.all().current;
      for (const StaleName& name : names) check(program, name);
      EXPECT_EQ(program.allocator().stats().allocation.all().current, live);
      EXPECT_EQ(program.allocator().Validate(), absl::OkStatus());
    }
  }
}

TEST(StaleBlockDeathTest, ABlockFreedTwiceStopsTheProcess) {
  ForEachStaleState(StaleProgram::Way::kBlock, [](StaleProgram& program, const StaleName& name) {
    EXPECT_DEATH(program.allocator().Free(name.block), "^ashlar: Free: block 0x[^\n]* is not live[^\n]*\n$");
  });
}

TEST(StaleBlockDeathTest, AStreamRecordedForAFreedBlockStopsTheProcess) {
  ForEachStaleState(StaleProgram::Way::kBlock, [](StaleProgram& program, const StaleName& name) {
    EXPECT_DEATH(program.allocator().RecordStream(name.block, Stream{3}),
                 "^ashlar: RecordStream: block 0x[^\n]* is not live[^\n]*\n$");
  });
}

TEST(StaleBlockTest, AnAddressFreedTwiceIsNobodys) {
  ForEachStaleState(StaleProgram::Way::kAddress, [](StaleProgram& program, const StaleName& name) {
    EXPECT_FALSE(program.allocator().FreeAddress(name.address));
  });
}

// What cannot be told (docs/library/misuse.md): the name is another's by now. The accounting stays whole; no block has
// two owners.
TEST(StaleBlockTest, ANameThatIsAnothersByNowFreesTheOthersBlock) {
  for (const StaleProgram::Way way : {StaleProgram::Way::kBlock, StaleProgram::Way::kAddress}) {
    StaleProgram program(way, false, "");
    program.Drop(program.Get(2 * kMiB));
    const StaleName first = program.Get(2 * kMiB);
    program.Drop(first);
    StaleName second = program.Get(2 * kMiB);
    for (int tries = 0; tries < 4 && second.block != first.block; ++tries) {  // a segment's records go round
      program.Drop(second);
      second = program.Get(2 * kMiB);
    }
    EXPECT_EQ(second.block, first.block);
    EXPECT_EQ(second.address, first.address);
    program.Drop(first);
    EXPECT_EQ(program.allocator().stats().allocation.all().current, 0);
    EXPECT_EQ(program.allocator().Validate(), absl::OkStatus());
  }
}

TEST(StaleBlockTest, NoBlockIsFreedAndRecordedForNothing) {
  StaleProgram program(StaleProgram::Way::kBlock, false, "");
  program.allocator().Free(nullptr);
  program.allocator().RecordStream(nullptr, Stream{0});
  program.allocator().RecordStream(nullptr, Stream{3});
  EXPECT_FALSE(program.allocator().FreeAddress(0));
  EXPECT_EQ(program.allocator().Validate(), absl::OkStatus());
}

}  // namespace
}  // namespace ashlar::core
