// docs/library/misuse.md: calls with what is no block, no device or no allocator any more, callbacks that throw or call
// back, and what an allocator says at its end.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/recorder.h"
#include "allocator/device/cuda_device.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::core {
namespace {

// What callers are given, they cannot write through.
using Given = decltype(std::declval<CachingAllocator&>().Allocate(1, Stream{}))::value_type;
static_assert(!std::is_assignable_v<decltype((std::declval<Given>()->size_bytes)), std::uint64_t>);
static_assert(!std::is_assignable_v<decltype((std::declval<Given>()->state)), policy::BlockUse>);
static_assert(!std::is_convertible_v<Given, policy::Block*>);

std::string RecordedText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Calls something on the first event or fact.
class CallingSink final : public trace::EventSink {
 public:
  explicit CallingSink(std::function<void()> call) : call_(std::move(call)) {}
  void OnEvent(const trace::Event&, std::uint64_t) override { call_(); }
  void OnFact(const trace::AnyFact&) override { call_(); }

 private:
  std::function<void()> call_;
};

// What an allocator says when it ends, `use` being done with it before.
std::string LastWords(const std::string& conf, const std::function<void(device::FakeCuda&, CachingAllocator&)>& use) {
  device::FakeCuda cuda{{.capacity_bytes = kGiB}};
  cuda.MakeCurrent(cuda.ContextOf(0));
  const std::unique_ptr<device::CudaDevice> device = *device::CudaDevice::Open({.ordinal = 0});
  testing::internal::CaptureStderr();
  {
    CachingAllocator allocator(device.get(),
                               *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
    use(cuda, allocator);
  }
  return testing::internal::GetCapturedStderr();
}

TEST(WrongCallsTest, BlocksThatLiveAtTheEndAreTold) {
  const auto use = [](device::FakeCuda&, CachingAllocator& allocator) {
    allocator.Free(*allocator.Allocate(5 * kMiB, Stream{0}));
    ASSERT_TRUE(allocator.Allocate(2 * kMiB, Stream{0}).ok());
    ASSERT_TRUE(allocator.AllocateAddress(kMiB, Stream{1}).ok());
    Block* waiting = *allocator.Allocate(kMiB, Stream{0});
    allocator.RecordStream(waiting, Stream{1});
    allocator.Free(waiting);
  };
  EXPECT_EQ(LastWords("", use),
            "ashlar: an allocator ended with 2 live blocks, 3.00 MiB, not freed; report_leaks:False hides this\n");
  EXPECT_EQ(LastWords("report_leaks:False", use), "");
  const auto free_all = [](device::FakeCuda&, CachingAllocator& allocator) {
    allocator.Free(*allocator.Allocate(5 * kMiB, Stream{0}));
  };
  EXPECT_EQ(LastWords("", free_all), "");
  const auto reset = [](device::FakeCuda& cuda, CachingAllocator& allocator) {
    ASSERT_TRUE(allocator.Allocate(2 * kMiB, Stream{0}).ok());
    cuda.ResetDevice(0, true);
    EXPECT_FALSE(allocator.Allocate(40 * kMiB, Stream{0}).ok());
  };
  EXPECT_EQ(LastWords("", reset), "") << "the device took its memory with it";
}

// The decision stands, the accounting is whole, and what was recorded before is in the file.
TEST(WrongCallsTest, WhatStackOfThrowsEndsTheRecordingAlone) {
  const std::string path = testing::TempDir() + "misuse_" + std::to_string(getpid()) + ".ashlar";
  for (const bool is_ring : {false, true}) {
    device::SimDevice device({});
    CachingAllocator allocator(&device, policy::Options{});
    int events = 0;
    RecorderSettings options;
    options.chunk_bytes = 64;
    options.stack_of = [&](const trace::Event&, trace::StackTable&) -> trace::StackId {
      if (++events == 1000) throw std::bad_alloc();
      return trace::kNoStack;
    };
    std::unique_ptr<Recorder> recorder =
        *(is_ring ? Recorder::Ring(&allocator, options) : Recorder::ToFile(&allocator, path, options));
    std::vector<Block*> blocks;
    for (int i = 0; i < 1200; ++i) blocks.push_back(*allocator.Allocate(3 * kMiB, Stream{0}));
    EXPECT_EQ(events, 1000) << "asked no more";
    EXPECT_EQ(allocator.stats().allocation.all().current, 1200);
    for (Block* block : blocks) allocator.Free(block);
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
    EXPECT_THAT(std::string(recorder->status().message()), testing::HasSubstr("threw std::bad_alloc"));
    EXPECT_EQ(recorder->Write(path).ok(), false) << "a file is flushed, and the ring has ended";
    EXPECT_EQ(recorder->Finish(), recorder->status());
    if (!is_ring) {
      const absl::StatusOr<trace::Snapshot> read = trace::Decode(RecordedText(path));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_GT(read->device_traces[0].size(), 600u) << "all but the chunk that was being filled";
      EXPECT_LT(read->device_traces[0].size(), 1000u);
    }
    recorder = *Recorder::Ring(&allocator);  // the allocator's only sink again
    allocator.Free(*allocator.Allocate(3 * kMiB, Stream{0}));
    EXPECT_EQ(recorder->event_count(), 3u);
    EXPECT_EQ(recorder->Finish(), absl::OkStatus());
  }
  std::remove(path.c_str());
}

TEST(WrongCallsDeathTest, ANullDeviceStopsTheProcess) {
  EXPECT_DEATH(CachingAllocator(nullptr, policy::Options{}), "^ashlar: CachingAllocator: its device is null[^\n]*\n$");
}

TEST(WrongCallsDeathTest, APointerThatIsNoBlockStopsTheProcess) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  alignas(64) std::array<unsigned char, 256> memory{};
  for (const int fill : {0, 1, 0xcc, 0xff}) {
    memory.fill(static_cast<unsigned char>(fill));
    for (const std::size_t offset : {0, 1, 8, 64, 72}) {
      auto* wild = reinterpret_cast<Block*>(memory.data() + offset);
      EXPECT_DEATH(allocator.Free(wild), "^ashlar: Free: block 0x[^\n]* no allocator gave this pointer\n$");
      EXPECT_DEATH(allocator.RecordStream(wild, Stream{3}), "^ashlar: RecordStream: block 0x[^\n]*this pointer\n$");
    }
  }
}

TEST(WrongCallsDeathTest, ABlockOfAnotherAllocatorStopsTheProcess) {
  device::SimDevice device({});
  CachingAllocator ours(&device, policy::Options{});
  CachingAllocator other(&device, policy::Options{});
  Block* cached = *other.Allocate(kMiB, Stream{0});
  other.Free(cached);
  CallingSink idle([] {});
  for (const bool is_recorded : {false, true}) {
    ours.SetSink(is_recorded ? &idle : nullptr);
    Block* block = *other.Allocate(kMiB, Stream{0});
    EXPECT_DEATH(ours.Free(block), "^ashlar: Free: block 0x[^\n]* is another allocator's[^\n]*\n$");
    EXPECT_DEATH(ours.RecordStream(block, Stream{3}), "^ashlar: RecordStream: block 0x[^\n]* is another allocator's");
    EXPECT_FALSE(ours.FreeAddress(block->address));
    other.Free(block);
  }
  ours.SetSink(nullptr);
  EXPECT_EQ(ours.Validate(), absl::OkStatus());
  EXPECT_EQ(other.Validate(), absl::OkStatus());
}

TEST(WrongCallsDeathTest, AnAllocatorThatIsGoneStopsTheProcess) {
  device::SimDevice device({});
  std::optional<CachingAllocator> allocator(std::in_place, &device, policy::Options{});
  CachingAllocator* gone = &*allocator;
  Block* block = *gone->Allocate(kMiB, Stream{0});
  const std::uint64_t address = *gone->AllocateAddress(kMiB, Stream{0});
  allocator.reset();
  const std::vector<std::function<void()>> calls = {
      [&] { gone->Free(block); },
      [&] { gone->RecordStream(block, Stream{3}); },
      [&] { gone->FreeAddress(address); },
      [&] { (void)gone->Allocate(kMiB, Stream{0}); },
      [&] { (void)gone->AllocateAddress(kMiB, Stream{0}); },
      [&] { gone->EmptyCache(); },
      [&] { (void)gone->stats(); },
  };
  for (const std::function<void()>& call : calls) {
    EXPECT_DEATH(call(), "^ashlar: Allocator: called after its destructor[^\n]*\n$");
  }
}

TEST(WrongCallsDeathTest, ACallFromWithinASinkOrFilterStopsTheProcess) {
  constexpr char kCheck[] = "check failed: thread_caches_.inside_.load";
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  const std::vector<std::function<void()>> calls = {
      [&] { (void)allocator.Allocate(512, Stream{0}); },
      [&] { allocator.EmptyCache(); },
      [] {
        if (fork() == 0) _exit(0);
      },
  };
  for (const std::function<void()>& call : calls) {
    CallingSink sink(call);
    EXPECT_DEATH(
        {
          allocator.SetSink(&sink);
          (void)allocator.Allocate(2 * kMiB, Stream{0});
        },
        kCheck);
    EXPECT_DEATH(
        {
          const StreamFilter filter = [&call](Stream) {
            call();
            return false;
          };
          if (allocator.BeginPool({0, 9}, filter).ok()) (void)allocator.Allocate(2 * kMiB, Stream{0});
        },
        kCheck);
  }
}

// Whatever it throws, whichever call made the decision, and whether it is told of an event or a fact.
TEST(WrongCallsDeathTest, WhatASinkThrowsStopsTheProcess) {
  struct Thrown {
    std::function<void()> raise;
    std::string text;
  };
  const std::vector<Thrown> all_thrown = {
      {[] { throw std::bad_alloc(); }, "std::bad_alloc"},
      {[] { throw std::runtime_error("KeyboardInterrupt"); }, "KeyboardInterrupt"},
      {[] { throw 7; }, "what is no std::exception"},
  };
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  Block* block = *allocator.Allocate(2 * kMiB, Stream{0});
  const std::vector<std::function<void()>> calls = {
      [&] { (void)allocator.Allocate(2 * kMiB, Stream{0}); },          // cached
      [&] { (void)allocator.Allocate(40 * kMiB, Stream{0}); },         // a new segment
      [&] { (void)allocator.AllocateAddress(40 * kMiB, Stream{0}); },  //
      [&] { allocator.Free(block); },
      [&] { allocator.SetMemoryLimit(kGiB); },  // a fact
      [&] { allocator.EmptyCache(); },
  };
  for (const Thrown& thrown : all_thrown) {
    for (const std::function<void()>& call : calls) {
      CallingSink sink(thrown.raise);
      EXPECT_DEATH(
          {
            allocator.SetSink(&sink);
            call();
          },
          "^ashlar: EventSink::On(Event|Fact) threw " + thrown.text + ": a sink must not throw[^\n]*\n$");
    }
  }
}

}  // namespace
}  // namespace ashlar::core
