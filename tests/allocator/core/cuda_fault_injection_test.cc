// The allocator over the CUDA device over the fake CUDA: each CUDA call of a program in turn fails, those too that
// return memory, handle events or switch contexts. After each request the allocator is valid and what CUDA has given
// out is exactly what the heap holds and what the device still has to return; the next request works; in the end
// nothing is left. The fake aborts on any misuse on the way.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/cuda_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/held_bytes.h"
#include "tests/allocator/core/program.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::core {
namespace {

using device::CudaDevice;
using device::FakeCuda;

constexpr int kUnknown = 999;  // CUDA_ERROR_UNKNOWN

// A program that reaches every call: two streams, small and large blocks, all of it given back now and then.
Program EveryCall(const std::string& conf) {
  Program program;
  program.conf = conf;
  program.capacity_bytes = 64 * kMiB;
  std::uint32_t id = 0;
  for (const std::uint64_t size_bytes : {kMiB / 2, 5 * kMiB, 30 * kMiB, 3 * kMiB}) {
    for (const std::uint64_t stream : {0, 7}) {
      program.ops.push_back({Op::kAlloc, id, size_bytes, stream, 0});
      program.ops.push_back({Op::kRecord, id, 0, 7 - stream, 0});
      if (stream == 7) program.ops.push_back({Op::kFree, id, 0, 0, 0});
      ++id;
    }
    if (size_bytes == 5 * kMiB) program.ops.push_back({Op::kComplete, 0, 0, 0, 0});
  }
  program.ops.push_back({Op::kFree, 2, 0, 0, 0});
  program.ops.push_back({Op::kEmptyCache, 0, 0, 0, 0});
  program.ops.push_back({Op::kAlloc, id, 40 * kMiB, 0, 0});  // more than there is, or all that is left
  program.ops.push_back({Op::kFree, 0, 0, 0, 0});
  program.ops.push_back({Op::kAlloc, id + 1, kMiB, 0, 0});
  return program;
}

class FaultyCuda {
 public:
  FaultyCuda(const Program& program, int ordinal)
      : program_(program),
        cuda_({.device_count = 2,
               .capacity_bytes = program.capacity_bytes,
               .events_complete_immediately = program.events_complete_immediately}) {
    cuda_.MakeCurrent(cuda_.ContextOf(0));
    // Somebody has used device 0 before; the allocator's device is that one, or another.
    other_ = *CudaDevice::Open({.ordinal = 0});
    device_ = *CudaDevice::Open({.ordinal = ordinal});
    ordinal_ = ordinal;
    allocator_.emplace(device_.get(), *policy::ParseConf(program.conf, program.compat, policy::Keys::kAshlar));
  }

  // False when the program has no call number `call`.
  bool Run(std::uint64_t call, int code) {
    cuda_.FailCall(call, code);
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      Step(program_.ops[i]);
      Check(i);
      if (testing::Test::HasFailure()) return false;
    }
    GiveEverythingBack();
    return cuda_.has_failed();
  }

  const std::string& failed_call() const { return cuda_.failed_call(); }

 private:
  void Step(const Op& op) {
    const auto live = live_.find(op.id);
    if (op.kind == Op::kAlloc && live == live_.end()) return Allocate(op);
    if (op.kind == Op::kComplete) return cuda_.CompleteAllWork();
    if (op.kind == Op::kEmptyCache) return allocator_->EmptyCache();
    if (live == live_.end()) return;
    if (op.kind == Op::kRecord) return allocator_->RecordStream(live->second, Stream{op.stream});
    if (op.kind != Op::kFree) return;
    allocator_->Free(live->second);
    live_.erase(live);
  }

  void Allocate(const Op& op) {
    const bool had_failed = cuda_.has_failed();
    absl::StatusOr<Block*> block = allocator_->Allocate(op.value, Stream{op.stream});
    if (!block.ok() && !absl::IsResourceExhausted(block.status())) {
      EXPECT_TRUE(cuda_.has_failed() && !had_failed) << block.status();
      EXPECT_NE(block.status().message().find(failed_call()), absl::string_view::npos) << block.status();
      block = allocator_->Allocate(op.value, Stream{op.stream});
      EXPECT_TRUE(block.ok() || absl::IsResourceExhausted(block.status())) << block.status();
    }
    if (block.ok() && *block != nullptr) live_[op.id] = *block;
  }

  void Check(std::size_t op) {
    EXPECT_EQ(cuda_.used_bytes(ordinal_), HeldBytes(Inspection(*allocator_).heap()) + device_->unreturned_bytes())
        << "after op " << op << ", " << failed_call();
    EXPECT_TRUE(allocator_->Validate().ok()) << "after op " << op << ": " << allocator_->Validate();
    const bool is_restored = cuda_.current() == cuda_.ContextOf(0) || failed_call() == "cuCtxPopCurrent";
    EXPECT_TRUE(is_restored) << "after op " << op << ", " << failed_call();
  }

  void GiveEverythingBack() {
    for (const auto& [id, block] : live_) allocator_->Free(block);
    live_.clear();
    allocator_->EmptyCache();
    cuda_.StopFailing();
    const absl::StatusOr<Block*> last = allocator_->Allocate(1, Stream{0});  // obtains memory, so returns leftovers
    ASSERT_TRUE(last.ok()) << last.status();
    allocator_->Free(*last);
    allocator_->EmptyCache();
    EXPECT_EQ(allocator_->pending_event_count(), 0u) << failed_call();
    EXPECT_EQ(Inspection(*allocator_).heap().reserved_bytes(), 0u) << failed_call();
    EXPECT_EQ(cuda_.used_bytes(ordinal_), 0u) << failed_call();
    // A reservation whose first page could not be had waits, empty, for its stream's next request.
    EXPECT_EQ(cuda_.live_reservations(), Inspection(*allocator_).heap().segments().size()) << failed_call();
  }

  const Program& program_;
  FakeCuda cuda_;
  int ordinal_ = 0;
  std::unique_ptr<CudaDevice> other_;
  std::unique_ptr<CudaDevice> device_;
  std::optional<CachingAllocator> allocator_;
  std::map<std::uint32_t, Block*> live_;
};

// Fails each call of the program in turn; the names of the calls that failed.
void FailEachCall(const Program& program, int ordinal, int code, std::set<std::string>& failed) {
  for (std::uint64_t call = 0;; ++call) {
    FaultyCuda run(program, ordinal);
    if (!run.Run(call, code)) break;
    failed.insert(run.failed_call());
  }
}

TEST(CudaFaultInjectionTest, EachCallOfAWrittenProgram) {
  for (const int code : {kUnknown, device::kCudaErrorOutOfMemory}) {
    std::set<std::string> failed;
    for (const char* conf : {"", "expandable_segments:True", "policy:ashlar"}) {
      for (const int ordinal : {0, 1}) {
        SCOPED_TRACE(testing::Message() << conf << ", device " << ordinal << ", code " << code);
        FailEachCall(EveryCall(conf), ordinal, code, failed);
      }
    }
    const std::set<std::string> all = {"cuMemAlloc",
                                       "cuMemFree",
                                       "cuMemGetInfo",
                                       "cuEventCreate",
                                       "cuEventRecord",
                                       "cuEventQuery",
                                       "cuEventSynchronize",
                                       "cuStreamSynchronize",
                                       "cuThreadExchangeStreamCaptureMode",
                                       "cuCtxGetCurrent",
                                       "cuCtxGetId",
                                       "cuCtxPushCurrent",
                                       "cuCtxPopCurrent",
                                       "cuMemAddressReserve",
                                       "cuMemAddressFree",
                                       "cuMemCreate",
                                       "cuMemMap",
                                       "cuMemSetAccess",
                                       "cuMemUnmap",
                                       "cuMemRelease"};
    for (const std::string& name : all) EXPECT_TRUE(failed.contains(name)) << name << " never failed: prove nothing";
  }
}

// Two streams share what is left of a segment: each borrows from the other.
TEST(CudaFaultInjectionTest, EachCallOfBorrowing) {
  Program program;
  program.conf = "borrow_across_streams:True,sync_just_enough:True";
  program.capacity_bytes = 40 * kMiB;
  for (std::uint32_t id = 0; id < 8; ++id) {
    program.ops.push_back({Op::kAlloc, id, (id < 2 ? 3 : 8) * kMiB, id % 2 * 7, 0});
    if (id >= 4) program.ops.push_back({Op::kFree, id - 2, 0, 0, 0});
    if (id == 5) program.ops.push_back({Op::kComplete, 0, 0, 0, 0});
  }
  for (std::uint32_t id = 8; id < 11; ++id) program.ops.push_back({Op::kAlloc, id, 9 * kMiB, 0, 0});
  std::set<std::string> failed;
  FailEachCall(program, 0, kUnknown, failed);
  EXPECT_TRUE(failed.contains("cuStreamWaitEvent"));
}

TEST(CudaFaultInjectionTest, EachCallOfRandomPrograms) {
  std::set<std::string> failed;
  for (std::uint64_t seed = 600'000; seed < 600'012; ++seed) {
    Program program = RandomProgram(seed);
    program.ops.resize(std::min<std::size_t>(program.ops.size(), 30));
    SCOPED_TRACE("seed " + std::to_string(seed));
    FailEachCall(program, static_cast<int>(seed % 2), seed % 3 == 0 ? device::kCudaErrorOutOfMemory : kUnknown, failed);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(failed.size(), 15u);
}

// Blocks that another stream uses stay pending while nothing proves that it is done.
TEST(CudaFaultInjectionTest, NoBlockIsReusedWithoutProof) {
  FakeCuda cuda({.capacity_bytes = 64 * kMiB});
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.ordinal = 0});
  CachingAllocator allocator(device.get(), policy::Options{});
  Block* block = *allocator.Allocate(30 * kMiB, Stream{0});
  allocator.RecordStream(block, Stream{7});
  allocator.Free(block);
  cuda.FailFrom(0, device::kCudaErrorIllegalAddress);
  const absl::StatusOr<Block*> next = allocator.Allocate(30 * kMiB, Stream{0});
  EXPECT_TRUE(absl::IsInternal(next.status())) << next.status();
  EXPECT_EQ(allocator.stats().num_ooms, 0u) << "a broken context is not out of memory";
  allocator.EmptyCache();
  EXPECT_TRUE(absl::IsInternal(allocator.TakeDeviceError()));
  EXPECT_TRUE(allocator.TakeDeviceError().ok()) << "told once";
  EXPECT_EQ(allocator.pending_event_count(), 1u);
  EXPECT_TRUE(allocator.Validate().ok()) << allocator.Validate();
  cuda.StopFailing();
  EXPECT_TRUE(allocator.Allocate(64 * kMiB, Stream{0}).ok()) << "the ladder waits for the event and returns the block";
  EXPECT_EQ(allocator.pending_event_count(), 0u);
}

// Pages go only after their stream: one that cannot be waited for keeps them, and they serve the next request.
TEST(CudaFaultInjectionTest, NoPageIsUnmappedWithoutItsStream) {
  FakeCuda cuda({.capacity_bytes = 64 * kMiB});
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.ordinal = 0});
  CachingAllocator allocator(device.get(), *policy::ParseConf("expandable_segments:True", policy::Compat::kTorch210));
  cuda.MakeCurrent(cuda.ContextOf(0));
  allocator.Free(*allocator.Allocate(30 * kMiB, Stream{0}));
  const std::uint64_t held_bytes = cuda.used_bytes();
  cuda.FailWork(0, kUnknown);
  allocator.EmptyCache();
  EXPECT_EQ(cuda.failed_call(), "cuStreamSynchronize");
  EXPECT_TRUE(absl::IsInternal(allocator.TakeDeviceError()));
  EXPECT_EQ(cuda.calls_of("cuMemUnmap"), 0u);
  EXPECT_EQ(cuda.used_bytes(), held_bytes);
  EXPECT_TRUE(allocator.Validate().ok()) << allocator.Validate();
  allocator.Free(*allocator.Allocate(30 * kMiB, Stream{0}));
  EXPECT_EQ(cuda.used_bytes(), held_bytes) << "from the cache";
  allocator.EmptyCache();
  EXPECT_EQ(cuda.used_bytes(), 0u);
}

// The device says that its memory is exhausted while the ladder could not give back what it holds: that is the error.
TEST(CudaFaultInjectionTest, OutOfMemoryIsSaidOnlyAfterTheWholeLadder) {
  FakeCuda cuda({.capacity_bytes = 64 * kMiB});
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.ordinal = 0});
  CachingAllocator allocator(device.get(), policy::Options{});
  Block* block = *allocator.Allocate(40 * kMiB, Stream{0});
  allocator.Free(block);
  const std::uint64_t calls = cuda.calls();
  EXPECT_TRUE(allocator.Allocate(64 * kMiB, Stream{3}).ok());
  const std::uint64_t calls_of_the_ladder = cuda.calls() - calls;
  allocator.EmptyCache();
  bool is_seen = false;
  for (std::uint64_t n = 0; n < calls_of_the_ladder; ++n) {
    FakeCuda small({.capacity_bytes = 64 * kMiB});
    const std::unique_ptr<CudaDevice> small_device = *CudaDevice::Open({.ordinal = 0});
    CachingAllocator on_small(small_device.get(), policy::Options{});
    on_small.Free(*on_small.Allocate(40 * kMiB, Stream{0}));
    small.FailCall(n, kUnknown);
    const absl::StatusOr<Block*> large = on_small.Allocate(64 * kMiB, Stream{3});
    EXPECT_FALSE(absl::IsResourceExhausted(large.status())) << small.failed_call() << ": " << large.status();
    if (small.failed_call() != "cuMemFree") continue;
    is_seen = true;
    EXPECT_TRUE(large.ok()) << "what cudaFree did not take is tried again before the next cudaMalloc";
    EXPECT_FALSE(on_small.TakeDeviceError().ok());
  }
  EXPECT_TRUE(is_seen);
}

}  // namespace
}  // namespace ashlar::core
