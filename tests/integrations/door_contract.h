// What every C++ door to the allocator owes its callers, as a suite over host memory. A door earns its place by a
// struct that speaks for it and one line:
//
//   struct PmrDoor {
//     static constexpr bool kZeroBytesAreNull = false;
//     explicit PmrDoor(SharedAllocator allocator) : resource(std::move(allocator)) {}
//     void* Allocate(std::size_t bytes, std::size_t alignment) { return resource.allocate(bytes, alignment); }
//     void Free(void* memory, std::size_t bytes, std::size_t alignment) { resource.deallocate(...); }
//     bool Equals(const PmrDoor& other) const { return resource.is_equal(other.resource); }
//     PmrResource resource;
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Pmr, DoorContractTest, PmrDoor);
//
// Allocate throws std::bad_alloc where memory is not enough. A door whose calls return a number makes one of it.
#ifndef ASHLAR_TESTS_INTEGRATIONS_DOOR_CONTRACT_H_
#define ASHLAR_TESTS_INTEGRATIONS_DOOR_CONTRACT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ashlar/handle.h"
#include "gtest/gtest.h"

namespace ashlar {

template <typename Door>
class DoorContractTest : public testing::Test {
 protected:
  static constexpr std::size_t kCapacity = std::size_t{256} << 20;
  static constexpr std::size_t kMiB = std::size_t{1} << 20;

  SharedAllocator allocator_ = SharedAllocator::OpenHost(kCapacity, "report_leaks:False");
  Door door_ = Door(allocator_);
};
TYPED_TEST_SUITE_P(DoorContractTest);

// A block that the test filled with a byte of its own.
struct Filled {
  unsigned char* memory;
  std::size_t bytes;
  unsigned char byte;

  void Fill() const { std::memset(memory, byte, bytes); }
  bool IsIntact() const {
    for (std::size_t i = 0; i < bytes; ++i) {
      if (memory[i] != byte) return false;
    }
    return true;
  }
};

template <typename Door>
Filled AllocateFilled(Door& door, std::size_t bytes, unsigned char byte) {
  const Filled filled{static_cast<unsigned char*>(door.Allocate(bytes, 256)), bytes, byte};
  filled.Fill();
  return filled;
}

// Allocates and frees by turns, up to 16 blocks at a time; the blocks that were not intact.
template <typename Door>
int CountSpoiled(Door& door, unsigned seed, int steps) {
  std::vector<Filled> live;
  int spoiled = 0;
  for (int step = 0; step < steps; ++step) {
    seed = seed * 1664525 + 1013904223;
    if (live.size() == 16 || (!live.empty() && (seed >> 28) < 7)) {
      const std::size_t index = (seed >> 8) % live.size();
      spoiled += live[index].IsIntact() ? 0 : 1;
      door.Free(live[index].memory, live[index].bytes, 256);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      live.push_back(AllocateFilled(door, 1 + (seed >> 12) % 50000, static_cast<unsigned char>(seed >> 4)));
    }
  }
  for (const Filled& filled : live) {
    spoiled += filled.IsIntact() ? 0 : 1;
    door.Free(filled.memory, filled.bytes, 256);
  }
  return spoiled;
}

TYPED_TEST_P(DoorContractTest, ZeroBytesAreNothingOrABlock) {
  void* const one = this->door_.Allocate(0, 1);
  void* const two = this->door_.Allocate(0, 1);
  EXPECT_EQ(one == nullptr, TypeParam::kZeroBytesAreNull);
  EXPECT_EQ(one == two, TypeParam::kZeroBytesAreNull);
  this->door_.Free(one, 0, 1);
  this->door_.Free(two, 0, 1);
  EXPECT_EQ(this->allocator_.Statistics().allocated_bytes, 0);
}

TYPED_TEST_P(DoorContractTest, MemoryIsAlignedAsAsked) {
  for (std::size_t alignment = 1; alignment <= 256; alignment *= 2) {
    void* const odd = this->door_.Allocate(3, 1);  // so that the next does not begin a segment
    void* const memory = this->door_.Allocate(777, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0) << alignment;
    this->door_.Free(memory, 777, alignment);
    this->door_.Free(odd, 3, 1);
  }
}

TYPED_TEST_P(DoorContractTest, BlocksDoNotOverlapAndKeepTheirBytes) {
  EXPECT_EQ(CountSpoiled(this->door_, 7, 2000), 0);
  const ashlar_statistics statistics = this->allocator_.Statistics();
  EXPECT_GE(statistics.allocations, 900);
  EXPECT_EQ(statistics.allocations, statistics.frees);
  EXPECT_EQ(statistics.allocated_bytes, 0);
}

TYPED_TEST_P(DoorContractTest, WhatIsFreedServesTheNextRequest) {
  void* const first = this->door_.Allocate(5 * this->kMiB, 256);
  this->door_.Free(first, 5 * this->kMiB, 256);
  const std::uint64_t device_allocations = this->allocator_.Statistics().device_allocations;
  for (int i = 0; i < 100; ++i) {
    void* const memory = this->door_.Allocate(5 * this->kMiB, 256);
    EXPECT_EQ(memory, first);
    this->door_.Free(memory, 5 * this->kMiB, 256);
  }
  EXPECT_EQ(device_allocations, 1);
  EXPECT_EQ(this->allocator_.Statistics().device_allocations, device_allocations);
}

TYPED_TEST_P(DoorContractTest, OutOfMemoryIsABadAllocWithItsReasonAndChangesNothing) {
  void* const held = this->door_.Allocate(100 * this->kMiB, 256);
  std::string text;
  try {
    this->door_.Allocate(200 * this->kMiB, 256);
  } catch (const std::bad_alloc& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("200.00 MiB requested"), std::string::npos) << text;
  EXPECT_EQ(this->allocator_.Statistics().out_of_memory_errors, 1);
  void* const fits = this->door_.Allocate(120 * this->kMiB, 256);
  EXPECT_NE(fits, nullptr);
  this->door_.Free(fits, 120 * this->kMiB, 256);
  this->door_.Free(held, 100 * this->kMiB, 256);
}

TYPED_TEST_P(DoorContractTest, WhatIsCachedMakesRoomBeforeARequestFails) {
  void* const cached = this->door_.Allocate(150 * this->kMiB, 256);
  this->door_.Free(cached, 150 * this->kMiB, 256);
  void* const memory = this->door_.Allocate(200 * this->kMiB, 256);
  EXPECT_NE(memory, nullptr);
  this->door_.Free(memory, 200 * this->kMiB, 256);
}

TYPED_TEST_P(DoorContractTest, TwoThreadsMayUseIt) {
  int spoiled[2] = {-1, -1};
  std::thread other([&] { spoiled[1] = CountSpoiled(this->door_, 11, 2000); });
  spoiled[0] = CountSpoiled(this->door_, 13, 2000);
  other.join();
  EXPECT_EQ(spoiled[0], 0);
  EXPECT_EQ(spoiled[1], 0);
  EXPECT_EQ(this->allocator_.Statistics().allocated_bytes, 0);
}

TYPED_TEST_P(DoorContractTest, AnotherThreadMayFree) {
  const Filled filled = AllocateFilled(this->door_, 3000, 5);
  std::thread([&] {
    EXPECT_TRUE(filled.IsIntact());
    this->door_.Free(filled.memory, filled.bytes, 256);
  }).join();
  EXPECT_EQ(this->allocator_.Statistics().allocated_bytes, 0);
}

TYPED_TEST_P(DoorContractTest, TwoAreEqualWhereOneFreesWhatTheOtherAllocated) {
  TypeParam same(this->allocator_);
  TypeParam foreign(SharedAllocator::OpenHost(this->kCapacity));
  EXPECT_TRUE(this->door_.Equals(this->door_));
  EXPECT_TRUE(this->door_.Equals(same));
  EXPECT_TRUE(same.Equals(this->door_));
  EXPECT_FALSE(this->door_.Equals(foreign));
  EXPECT_FALSE(foreign.Equals(this->door_));
  same.Free(this->door_.Allocate(1000, 8), 1000, 8);
  EXPECT_EQ(this->allocator_.Statistics().allocated_bytes, 0);
}

// An allocator that the program opened is there as long as a door to it is.
TYPED_TEST_P(DoorContractTest, ADoorKeepsItsAllocator) {
  auto door = std::make_unique<TypeParam>(SharedAllocator::OpenHost(this->kCapacity));
  const Filled filled = AllocateFilled(*door, 2 * this->kMiB, 9);
  EXPECT_TRUE(filled.IsIntact());
  door->Free(filled.memory, filled.bytes, 256);
}

REGISTER_TYPED_TEST_SUITE_P(DoorContractTest, ZeroBytesAreNothingOrABlock, MemoryIsAlignedAsAsked,
                            BlocksDoNotOverlapAndKeepTheirBytes, WhatIsFreedServesTheNextRequest,
                            OutOfMemoryIsABadAllocWithItsReasonAndChangesNothing,
                            WhatIsCachedMakesRoomBeforeARequestFails, TwoThreadsMayUseIt, AnotherThreadMayFree,
                            TwoAreEqualWhereOneFreesWhatTheOtherAllocated, ADoorKeepsItsAllocator);

}  // namespace ashlar

#endif  // ASHLAR_TESTS_INTEGRATIONS_DOOR_CONTRACT_H_
