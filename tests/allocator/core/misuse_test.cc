// docs/library/misuse.md, row by row: fork, the end of the program, a device that is reset, and addresses that are
// nobody's.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/cuda_device.h"
#include "allocator/device/host_device.h"
#include "allocator/device/sim_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/no_sink.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::core {
namespace {

using device::CudaDevice;
using device::FakeCuda;
using testing::HasSubstr;

static_assert(noexcept(std::declval<CachingAllocator&>().Free(nullptr)));
static_assert(noexcept(std::declval<CachingAllocator&>().FreeAddress(0)));
static_assert(noexcept(std::declval<CachingAllocator&>().RecordStream(nullptr, Stream{})));

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Forks; the number of the first check that fails in the child, 0 = none.
int InChild(const std::function<int()>& checks) {
  const pid_t child = fork();
  if (child == 0) _exit(checks());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Other threads are in the middle of anything when the fork comes; the child has a whole allocator all the same.
TEST(MisuseTest, HostMemoryWorksOnInAForkedChild) {
  device::HostDevice device({.capacity_bytes = 256 * kMiB});
  CachingAllocator allocator(&device, policy::Options{});
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Rng rng(i);
      while (!is_over.load(std::memory_order_relaxed)) {
        const absl::StatusOr<Block*> block = allocator.Allocate(rng.Between(1, 3 * kMiB), Stream{rng.Below(3)});
        if (block.ok()) allocator.Free(*block);
        if (rng.Below(50) == 0) allocator.EmptyCache();
      }
    });
  }
  NoSink sink;
  threads.emplace_back([&] {
    while (!is_over.load(std::memory_order_relaxed)) {
      allocator.SetSink(&sink);  // serial
      allocator.SetSink(nullptr);
    }
  });
  Block* own = *allocator.Allocate(kMiB, Stream{9});
  auto* bytes = reinterpret_cast<volatile char*>(static_cast<std::uintptr_t>(own->address));
  bytes[0] = 1;
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(InChild([&] {
                allocator.SetSink(nullptr);
                if (!allocator.Validate().ok()) return 1;
                const absl::StatusOr<Block*> block = allocator.Allocate(5 * kMiB, Stream{9});
                if (!block.ok()) return 2;
                bytes[0] = 2;  // its own copy
                allocator.Free(*block);
                allocator.Free(own);
                allocator.EmptyCache();
                return allocator.Validate().ok() ? 0 : 3;
              }),
              0);
    EXPECT_EQ(bytes[0], 1);
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  allocator.Free(own);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

// Everything a program may call on an allocator whose device is lost: one clear error, no crash, no call to CUDA. The
// number of the first check that fails.
int UseLostDevice(FakeCuda& cuda, CachingAllocator& allocator, Block* live, std::uint64_t live_address,
                  const std::string& why) {
  const std::uint64_t allocations = cuda.calls_of("cuMemAlloc");
  const std::uint64_t frees = cuda.calls_of("cuMemFree");
  const auto is_clear = [&](const absl::Status& status) {
    return absl::IsDataLoss(status) && status.message().find(why) != absl::string_view::npos;
  };
  if (!is_clear(allocator.Allocate(40 * kMiB, Stream{0}).status())) return 1;
  if (!is_clear(allocator.Allocate(kMiB, Stream{0}).status())) return 2;  // the cache has it, and must not give it
  if (!is_clear(allocator.AllocateAddress(kMiB, Stream{0}).status())) return 3;
  allocator.RecordStream(live, Stream{7});
  allocator.Free(live);
  if (!allocator.FreeAddress(live_address)) return 4;
  if (allocator.FreeAddress(live_address)) return 5;
  allocator.PollEvents();
  allocator.EmptyCache();
  if (!is_clear(allocator.TakeDeviceError())) return 6;
  allocator.CollectGarbage(kMiB);
  if (!is_clear(allocator.TakeDeviceError())) return 7;
  if (!allocator.Validate().ok()) return 8;
  if (allocator.stats().allocation.all().current != 0) return 9;
  if (cuda.calls_of("cuMemAlloc") > allocations + 1 || cuda.calls_of("cuMemFree") != frees) return 10;
  return 0;
}

// A device with memory in every state: live by block and by address, cached, pending.
struct OnCuda {
  OnCuda() {
    cuda.MakeCurrent(cuda.ContextOf(0));
    live = *allocator.Allocate(5 * kMiB, Stream{0});
    live_address = *allocator.AllocateAddress(5 * kMiB, Stream{0});
    allocator.Free(*allocator.Allocate(kMiB, Stream{0}));
  }
  FakeCuda cuda{{.capacity_bytes = kGiB}};
  std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.ordinal = 0});
  CachingAllocator allocator{device.get(), policy::Options{}};
  Block* live = nullptr;
  std::uint64_t live_address = 0;
};

TEST(MisuseTest, ACudaDeviceIsLostInAForkedChild) {
  OnCuda parent;
  const std::uint64_t calls = parent.cuda.calls();
  EXPECT_EQ(InChild([&] {
              const int failed =
                  UseLostDevice(parent.cuda, parent.allocator, parent.live, parent.live_address, "before a fork");
              parent.device.reset();
              return failed != 0 ? failed : parent.cuda.calls() == calls ? 0 : 99;
            }),
            0);
  EXPECT_TRUE(parent.allocator.Allocate(40 * kMiB, Stream{0}).ok()) << "the parent goes on";
  EXPECT_EQ(parent.allocator.Validate(), absl::OkStatus());
}

TEST(MisuseTest, AResetDeviceIsLost) {
  for (const bool is_remade : {false, true}) {
    OnCuda program;
    program.cuda.ResetDevice(0, is_remade);
    EXPECT_EQ(UseLostDevice(program.cuda, program.allocator, program.live, program.live_address, "cudaDeviceReset"), 0);
    EXPECT_THAT(std::string(program.device->Lost().message()), HasSubstr("cudaDeviceReset"));
  }
}

// A pending free asks the device at each request: the reset is seen before the cache hands out what is lost.
TEST(MisuseTest, AResetIsSeenWhileEventsAreOutstanding) {
  OnCuda program;
  program.allocator.RecordStream(program.live, Stream{7});
  program.allocator.Free(program.live);
  program.cuda.ResetDevice(0, true);
  EXPECT_TRUE(absl::IsDataLoss(program.allocator.Allocate(kMiB, Stream{0}).status()));
  EXPECT_EQ(program.allocator.Validate(), absl::OkStatus());
}

TEST(MisuseTest, ARuntimeThatIsShutDownIsLost) {
  OnCuda program;
  program.cuda.FailFrom(0, device::kCudaErrorDeinitialized);
  EXPECT_EQ(UseLostDevice(program.cuda, program.allocator, program.live, program.live_address, "shut down"), 0);
  program.device.reset();
  program.cuda.ResetDevice(0, false);  // the driver gives back what a program leaves
}

// At the end of a program CUDA may be gone before static objects are: they may still free and empty.
TEST(MisuseTest, AStaticAllocatorMayOutliveTheRuntime) {
  const auto program = [] {
    static OnCuda& cuda = *new OnCuda;
    struct Last {
      ~Last() {
        cuda.allocator.Free(cuda.live);
        cuda.allocator.FreeAddress(cuda.live_address);
        cuda.allocator.EmptyCache();
        cuda.device.reset();
      }
    };
    static const Last last;
    std::atexit([] { cuda.cuda.FailFrom(0, device::kCudaErrorDeinitialized); });  // runs before `last` goes
    std::exit(0);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "^$");
}

// The device may go before the allocator, as long as the allocator is not used in between.
TEST(MisuseTest, StaticsMayGoInAnyOrder) {
  const auto program = [] {
    static std::unique_ptr<CachingAllocator> allocator;
    static device::HostDevice device({.capacity_bytes = 64 * kMiB});
    allocator = std::make_unique<CachingAllocator>(&device, policy::Options{});
    std::exit(allocator->Allocate(kMiB, Stream{0}).ok() ? 0 : 1);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "^ashlar: an allocator ended with 1 live block[^\n]*\n$");
}

// The parent may still free what its forked child has a copy of.
TEST(MisuseTest, AForkedChildTellsNothingOfItsParentsBlocks) {
  device::SimDevice device({});
  auto allocator = std::make_unique<CachingAllocator>(&device, policy::Options{});
  Block* block = *allocator->Allocate(2 * kMiB, Stream{0});
  EXPECT_EQ(InChild([&] {
              testing::internal::CaptureStderr();
              allocator.reset();
              return testing::internal::GetCapturedStderr().empty() ? 0 : 1;
            }),
            0);
  allocator->Free(block);
}

TEST(MisuseTest, AnAddressThatIsNobodysChangesNothing) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  const std::uint64_t address = *allocator.AllocateAddress(kMiB, Stream{0});
  Block* block = *allocator.Allocate(kMiB, Stream{0});
  int foreign = 0;
  for (const std::uint64_t wrong : {std::uint64_t{0}, address + 512, block->address, ~std::uint64_t{0},
                                    static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&foreign))}) {
    EXPECT_FALSE(allocator.FreeAddress(wrong)) << wrong;
  }
  EXPECT_TRUE(allocator.FreeAddress(address));
  EXPECT_FALSE(allocator.FreeAddress(address)) << "twice";
  EXPECT_EQ(allocator.stats().allocation.all().current, 1);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

// A row without a test of its name proves nothing.
TEST(MisuseTest, EveryTestOfTheTableExists) {
  const auto read = [](const std::string& path) { return FileText(ASHLAR_SOURCE_DIR + path); };
  std::string tests;
  for (const char* name : {"misuse", "cuda_fault_injection", "pools", "threads", "ladder", "recorder_file",
                           "stale_block", "wrong_calls"}) {
    tests += read("/tests/allocator/core/" + std::string(name) + "_test.cc");
  }
  tests += read("/tests/allocator/api/allocator_test.cc");
  int found = 0;
  std::istringstream table(read("/docs/library/misuse.md"));
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line.front() != '|') continue;
    const std::string cell = line.substr(line.rfind('|', line.size() - 2));
    for (std::size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at + 1)) {
      const std::size_t end = cell.find('`', at + 1);
      const std::string name = cell.substr(at + 1, end - at - 1);
      at = end;
      if (name.find('.') != std::string::npos) continue;  // a file
      EXPECT_NE(tests.find(", " + name + ") {"), std::string::npos) << name;
      ++found;
    }
  }
  EXPECT_GE(found, 13);
}

TEST(MisuseDeathTest, DestructionWithAThreadInAnExclusiveSectionStopsTheProcess) {
  EXPECT_DEATH(
      {
        device::SimDevice device({});
        std::optional<CachingAllocator> allocator(std::in_place, &device, policy::Options{});
        Inspection(*allocator).WhileStill([&] { allocator.reset(); });
      },
      "^allocator/core/[a-z_.]+:[0-9]+: check failed: inside_.load");  // no folder of a build
}

}  // namespace
}  // namespace ashlar::core
