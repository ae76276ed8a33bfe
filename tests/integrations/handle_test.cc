#include "ashlar/handle.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "tests/integrations/integration_contract.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

struct HandleIntegration {
  static constexpr bool kZeroBytesAreNull = true;
  explicit HandleIntegration(SharedAllocator its) : allocator(std::move(its)) {}
  void* Allocate(std::size_t bytes, std::size_t alignment) { return allocator.Allocate(bytes, alignment, nullptr); }
  void Free(void* memory, std::size_t, std::size_t alignment) { allocator.FreeAligned(memory, alignment); }
  bool Equals(const HandleIntegration& other) const { return allocator == other.allocator; }
  SharedAllocator allocator;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Handle, IntegrationContractTest, HandleIntegration);

constexpr std::uint64_t kCapacity = std::uint64_t{1} << 30;
const ashlar_stream kOther = reinterpret_cast<ashlar_stream>(std::uintptr_t{64});

template <typename Act>
std::string ErrorOf(Act act) {
  try {
    act();
  } catch (const CallError& error) {
    return error.what();
  }
  return "";
}

TEST(SharedAllocatorTest, ErrorsAreTheChildrenThatCallersCatch) {
  static_assert(std::is_base_of_v<std::bad_alloc, OutOfMemoryError>);
  static_assert(std::is_base_of_v<std::runtime_error, CallError>);
  static_assert(std::is_nothrow_copy_constructible_v<OutOfMemoryError>);
  try {
    SharedAllocator::OpenSimulated(kCapacity, "no_such_setting:1");
    FAIL();
  } catch (const CallError& error) {
    EXPECT_EQ(error.status(), ASHLAR_INVALID_ARGUMENT);
    EXPECT_THAT(error.what(), HasSubstr("no_such_setting"));
  }
}

TEST(SharedAllocatorTest, WhatCannotBeHadIsRefusedInOneLine) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  EXPECT_THAT(ErrorOf([&] { allocator.Allocate(8, 24, nullptr); }), HasSubstr("powers of two"));
  EXPECT_THAT(ErrorOf([&] { allocator.Allocate(8, 0, nullptr); }), HasSubstr("an alignment of 0 bytes"));
  const ashlar_stream per_thread = reinterpret_cast<ashlar_stream>(std::uintptr_t{2});
  EXPECT_THAT(ErrorOf([&] { allocator.Allocate(8, per_thread); }), HasSubstr("per-thread default stream"));
  EXPECT_EQ(allocator.Statistics().allocations, 0);
}

TEST(SharedAllocatorTest, AnyAlignmentIsServed) {
  SharedAllocator allocator = SharedAllocator::OpenHost(kCapacity);
  for (std::size_t alignment = 1; alignment <= (std::size_t{1} << 22); alignment *= 2) {
    void* const odd = allocator.Allocate(3, 1, nullptr);  // so that the next does not begin a segment
    void* const memory = allocator.Allocate(70000, alignment, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0) << alignment;
    std::memset(memory, 1, 70000);
    allocator.FreeAligned(memory, alignment, alignment < 4096 ? nullptr : kOther);
    allocator.Free(odd);
  }
  allocator.FreeAligned(nullptr, 1024);
  allocator.EmptyCache();
  EXPECT_EQ(allocator.Statistics().allocated_bytes, 0);
  EXPECT_EQ(allocator.Statistics().reserved_bytes, 0);
}

TEST(SharedAllocatorTest, AlignmentsThatNoMemoryHasAreOutOfMemory) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  EXPECT_THROW(allocator.Allocate(8, std::size_t{1} << 63, nullptr), OutOfMemoryError);
  EXPECT_THROW(allocator.Allocate(SIZE_MAX, 1024, nullptr), OutOfMemoryError);
  EXPECT_EQ(allocator.Allocate(0, 1024, nullptr), nullptr);
  EXPECT_EQ(allocator.Statistics().allocated_bytes, 0);
}

TEST(SharedAllocatorTest, ABlockIsReusedByItsOwnStreamAlone) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  void* const memory = allocator.Allocate(4096, nullptr);
  allocator.Free(memory);
  void* const of_other = allocator.Allocate(4096, kOther);
  EXPECT_NE(of_other, memory);
  EXPECT_EQ(allocator.Allocate(4096, nullptr), memory);
}

TEST(SharedAllocatorTest, ABlockThatAnotherStreamFreedWaitsForThatStream) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  void* const memory = allocator.Allocate(4096, nullptr);
  allocator.Free(memory, kOther);
  ashlar_statistics statistics = allocator.Statistics();
  EXPECT_EQ(statistics.allocated_bytes, 0);
  EXPECT_EQ(statistics.active_bytes, 4096);  // it waits
  allocator.EmptyCache();
  statistics = allocator.Statistics();
  EXPECT_EQ(statistics.active_bytes, 0);
  EXPECT_EQ(statistics.reserved_bytes, 0);
}

TEST(SharedAllocatorTest, OfItsOwnStreamAFreeNeedNotWait) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  void* const memory = allocator.Allocate(4096, kOther);
  allocator.Free(memory, kOther);
  EXPECT_EQ(allocator.Statistics().active_bytes, 0);
  EXPECT_EQ(allocator.Allocate(4096, kOther), memory);
}

TEST(SharedAllocatorTest, NothingIsFreedAsNothing) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  allocator.Free(nullptr);
  allocator.Free(nullptr, kOther);
  EXPECT_EQ(allocator.Statistics().frees, 0);
}

TEST(SharedAllocatorTest, CopiesAreOneAllocator) {
  SharedAllocator first = SharedAllocator::OpenSimulated(kCapacity);
  SharedAllocator second = first;
  void* const memory = first.Allocate(1 << 20);
  first = SharedAllocator::OpenSimulated(kCapacity);
  EXPECT_NE(first, second);
  second.Free(memory);
  EXPECT_EQ(second.device(), -1);
  EXPECT_EQ(second.Statistics().total_bytes, kCapacity);
}

TEST(SharedAllocatorTest, ALimitIsOutOfMemoryAndCanBeTakenAway) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  allocator.SetMemoryLimit(64 << 20);
  EXPECT_THROW(allocator.Allocate(100 << 20), OutOfMemoryError);
  allocator.SetMemoryLimit(UINT64_MAX);
  allocator.SetMemoryFraction(0.05);
  EXPECT_THROW(allocator.Allocate(100 << 20), OutOfMemoryError);
  allocator.SetMemoryFraction(1);
  allocator.Free(allocator.Allocate(100 << 20));
  EXPECT_THAT(ErrorOf([&] { allocator.SetMemoryFraction(2); }), HasSubstr("fraction"));
}

std::uintmax_t SizeOf(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  std::filesystem::remove(path, error);
  return error ? 0 : bytes;
}

TEST(SharedAllocatorTest, WhatItDidIsWritten) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  const std::string path = testing::TempDir() + "shared_" + std::to_string(getpid()) + ".ashlar";
  allocator.StartRecording(path);
  allocator.Free(allocator.Allocate(100));
  EXPECT_THAT(ErrorOf([&] { allocator.StartRecording(path); }), HasSubstr("recorder"));
  allocator.StopRecording();
  EXPECT_GT(SizeOf(path), 0);
  allocator.StartRing(1 << 20);
  allocator.Free(allocator.Allocate(100));
  allocator.WriteRing(path);
  EXPECT_GT(SizeOf(path), 0);
  allocator.DumpSnapshot(path);
  EXPECT_GT(SizeOf(path), 0);
  EXPECT_THAT(ErrorOf([&] { allocator.DumpSnapshot("/no/such/folder/file"); }), HasSubstr("/no/such/folder"));
}

TEST(SharedPoolTest, ItsMemoryIsItsOwnAndGoesBackWithIt) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  {
    SharedPool pool(allocator);
    void* const memory = pool.Allocate(30 << 20);
    allocator.Free(memory);
    allocator.EmptyCache();
    EXPECT_EQ(allocator.Statistics().reserved_bytes, 30 << 20) << "the pool keeps it";
    void* const other = allocator.Allocate(30 << 20);
    EXPECT_NE(other, memory);
    allocator.Free(other);
    EXPECT_EQ(pool.Allocate(30 << 20), memory);
    allocator.Free(memory);
    EXPECT_THAT(ErrorOf([&] { pool.Allocate(8, reinterpret_cast<ashlar_stream>(std::uintptr_t{2})); }),
                HasSubstr("per-thread"));
  }
  allocator.EmptyCache();
  EXPECT_EQ(allocator.Statistics().reserved_bytes, 0);
}

TEST(SharedPoolTest, AScopeIsOfItsThread) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  SharedPool pool(allocator);
  void* const memory = pool.Allocate(30 << 20);
  allocator.Free(memory);
  {
    const SharedPool::Scope scope(pool);
    void* of_other = nullptr;
    std::thread([&] { of_other = allocator.Allocate(30 << 20); }).join();
    EXPECT_NE(of_other, memory);
    allocator.Free(of_other);
    EXPECT_EQ(allocator.Allocate(30 << 20), memory);
    EXPECT_THAT(ErrorOf([&] { const SharedPool::Scope second(pool); }), HasSubstr("route"));
  }
  allocator.Free(memory);
  EXPECT_NE(allocator.Allocate(30 << 20), memory);
}

TEST(SharedBufferTest, ItFreesItself) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  SharedBuffer outer;
  EXPECT_FALSE(outer);
  void* first = nullptr;
  {
    SharedBuffer buffer(allocator, 4096, kOther);
    first = buffer.data();
    EXPECT_EQ(buffer.size_bytes(), 4096);
    EXPECT_EQ(buffer.stream(), kOther);
    outer = std::move(buffer);
  }
  EXPECT_EQ(outer.data(), first);
  EXPECT_EQ(allocator.Statistics().allocated_bytes, 4096);
  outer.RecordStream(nullptr);
  outer = SharedBuffer(allocator, 4096, kOther);
  EXPECT_NE(outer.data(), first) << "it waits for the default stream";
  void* const released = outer.Release();
  outer.Reset();
  EXPECT_EQ(allocator.Statistics().allocated_bytes, 4096);
  allocator.Free(released);
  EXPECT_THROW(SharedBuffer(allocator, std::size_t{1} << 50), OutOfMemoryError);
  EXPECT_FALSE(SharedBuffer(allocator, 0));
  EXPECT_EQ(allocator.Statistics().allocated_bytes, 0);
}

TEST(SharedBufferTest, ItKeepsItsAllocator) {
  SharedBuffer buffer(SharedAllocator::OpenHost(kCapacity), 4096);
  std::memset(buffer.data(), 1, 4096);
}

TEST(SharedAllocatorDeathTest, AnAddressThatIsNobodysStopsTheProcess) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  void* const memory = allocator.Allocate(4096);
  allocator.Free(memory);
  EXPECT_DEATH(allocator.Free(memory), "ashlar: ashlar_free: no live block of this allocator begins at 0x");
  EXPECT_DEATH(allocator.Free(memory, kOther), "ashlar: ashlar_record_stream: no live block");
}

}  // namespace
}  // namespace ashlar
