#include "ashlar/handle.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "tests/doors/door_contract.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

struct HandleDoor {
  static constexpr bool kZeroBytesAreNull = true;
  explicit HandleDoor(SharedAllocator its) : allocator(std::move(its)) {}
  void* Allocate(std::size_t bytes, std::size_t alignment) { return allocator.Allocate(bytes, alignment, nullptr); }
  void Free(void* memory, std::size_t, std::size_t alignment) { allocator.FreeAligned(memory, alignment); }
  bool Equals(const HandleDoor& other) const { return allocator == other.allocator; }
  SharedAllocator allocator;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Handle, DoorContractTest, HandleDoor);

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
  static_assert(std::is_base_of_v<std::bad_alloc, AllocationError>);
  static_assert(std::is_base_of_v<std::runtime_error, CallError>);
  static_assert(std::is_nothrow_copy_constructible_v<AllocationError>);
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
  EXPECT_THROW(allocator.Allocate(8, std::size_t{1} << 63, nullptr), AllocationError);
  EXPECT_THROW(allocator.Allocate(SIZE_MAX, 1024, nullptr), AllocationError);
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

TEST(SharedAllocatorDeathTest, AnAddressThatIsNobodysStopsTheProcess) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(kCapacity);
  void* const memory = allocator.Allocate(4096);
  allocator.Free(memory);
  EXPECT_DEATH(allocator.Free(memory), "ashlar: ashlar_free: no live block of this allocator begins at 0x");
  EXPECT_DEATH(allocator.Free(memory, kOther), "ashlar: ashlar_record_stream: no live block");
}

}  // namespace
}  // namespace ashlar
