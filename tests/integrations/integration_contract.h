// What every C++ integration to the allocator owes its callers, as a suite over host memory. An integration earns its
// place by a struct that speaks for it and one line:
//
//   struct PmrIntegration {
//     static constexpr bool kZeroBytesAreNull = false;
//     explicit PmrIntegration(SharedAllocator allocator) : resource(std::move(allocator)) {}
//     void* Allocate(std::size_t bytes, std::size_t alignment) { return resource.allocate(bytes, alignment); }
//     void Free(void* memory, std::size_t bytes, std::size_t alignment) { resource.deallocate(...); }
//     bool Equals(const PmrIntegration& other) const { return resource.is_equal(other.resource); }
//     PmrResource resource;
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Pmr, IntegrationContractTest, PmrIntegration);
//
// Allocate throws std::bad_alloc where memory is not enough. An integration whose calls return a number makes one of
// it.
#ifndef ASHLAR_TESTS_INTEGRATIONS_INTEGRATION_CONTRACT_H_
#define ASHLAR_TESTS_INTEGRATIONS_INTEGRATION_CONTRACT_H_

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

template <typename Integration>
class IntegrationContractTest : public testing::Test {
 protected:
  static constexpr std::size_t kCapacity = std::size_t{256} << 20;
  static constexpr std::size_t kMiB = std::size_t{1} << 20;

  SharedAllocator allocator_ = SharedAllocator::OpenHost(kCapacity, "report_leaks:False");
  Integration integration_ = Integration(allocator_);
};
TYPED_TEST_SUITE_P(IntegrationContractTest);

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

template <typename Integration>
Filled AllocateFilled(Integration& integration, std::size_t bytes, unsigned char byte) {
  const Filled filled{static_cast<unsigned char*>(integration.Allocate(bytes, 256)), bytes, byte};
  filled.Fill();
  return filled;
}

// Allocates and frees by turns, up to 16 blocks at a time; the blocks that were not intact.
template <typename Integration>
int CountSpoiled(Integration& integration, unsigned seed, int steps) {
  std::vector<Filled> live;
  int spoiled = 0;
  for (int step = 0; step < steps; ++step) {
    seed = seed * 1664525 + 1013904223;
    if (live.size() == 16 || (!live.empty() && (seed >> 28) < 7)) {
      const std::size_t index = (seed >> 8) % live.size();
      spoiled += live[index].IsIntact() ? 0 : 1;
      integration.Free(live[index].memory, live[index].bytes, 256);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      live.push_back(AllocateFilled(integration, 1 + (seed >> 12) % 50000, static_cast<unsigned char>(seed >> 4)));
    }
  }
  for (const Filled& filled : live) {
    spoiled += filled.IsIntact() ? 0 : 1;
    integration.Free(filled.memory, filled.bytes, 256);
  }
  return spoiled;
}

TYPED_TEST_P(IntegrationContractTest, ZeroBytesAreNothingOrABlock) {
  void* const one = this->integration_.Allocate(0, 1);
  void* const two = this->integration_.Allocate(0, 1);
  EXPECT_EQ(one == nullptr, TypeParam::kZeroBytesAreNull);
  EXPECT_EQ(one == two, TypeParam::kZeroBytesAreNull);
  this->integration_.Free(one, 0, 1);
  this->integration_.Free(two, 0, 1);
  EXPECT_EQ(this->allocator_.Statistics().allocated_bytes, 0);
}

TYPED_TEST_P(IntegrationContractTest, MemoryIsAlignedAsAsked) {
  for (std::size_t alignment = 1; alignment <= 256; alignment *= 2) {
    void* const odd = this->integration_.Allocate(3, 1);  // so that the next does not begin a segment
    void* const memory = this->integration_.Allocate(777, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0) << alignment;
    this->integration_.Free(memory, 777, alignment);
    this->integration_.Free(odd, 3, 1);
  }
}

TYPED_TEST_P(IntegrationContractTest, BlocksDoNotOverlapAndKeepTheirBytes) {
  EXPECT_EQ(CountSpoiled(this->integration_, 7, 2000), 0);
  const ashlar_statistics statistics = this->allocator_.Statistics();
  EXPECT_GE(statistics.allocations, 900);
  EXPECT_EQ(statistics.allocations, statistics.frees);
  EXPECT_EQ(statistics.allocated_bytes, 0);
}

TYPED_TEST_P(IntegrationContractTest, WhatIsFreedServesTheNextRequest) {
  void* const first = this->integration_.Allocate(5 * this->kMiB, 256);
  this->integration_.Free(first, 5 * this->kMiB, 256);
  const std::uint64_t device_allocations = this->allocator_.Statistics().device_allocations;
  for (int i = 0; i < 100; ++i) {
    void* const memory = this->integration_.Allocate(5 * this->kMiB, 256);
    EXPECT_EQ(memory, first);
    this->integration_.Free(memory, 5 * this->kMiB, 256);
  }
  EXPECT_EQ(device_allocations, 1);
  EXPECT_EQ(this->allocator_.Statistics().device_allocations, device_allocations);
}

TYPED_TEST_P(IntegrationContractTest, OutOfMemoryIsABadAllocWithItsReasonAndChangesNothing) {
  void* const held = this->integration_.Allocate(100 * this->kMiB, 256);
  std::string text;
  try {
    this->integration_.Allocate(200 * this->kMiB, 256);
  } catch (const std::bad_alloc& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("200.00 MiB requested"), std::string::npos) << text;
  EXPECT_EQ(this->allocator_.Statistics().out_of_memory_errors, 1);
  void* const fits = this->integration_.Allocate(120 * this->kMiB, 256);
  EXPECT_NE(fits, nullptr);
  this->integration_.Free(fits, 120 * this->kMiB, 256);
  this->integration_.Free(held, 100 * this->kMiB, 256);
}

TYPED_TEST_P(IntegrationContractTest, WhatIsCachedMakesRoomBeforeARequestFails) {
  void* const cached = this->integration_.Allocate(150 * this->kMiB, 256);
  this->integration_.Free(cached, 150 * this->kMiB, 256);
  void* const memory = this->integration_.Allocate(200 * this->kMiB, 256);
  EXPECT_NE(memory, nullptr);
  this->integration_.Free(memory, 200 * this->kMiB, 256);
}

TYPED_TEST_P(IntegrationContractTest, TwoThreadsMayUseIt) {
  int spoiled[2] = {-1, -1};
  std::thread other([&] { spoiled[1] = CountSpoiled(this->integration_, 11, 2000); });
  spoiled[0] = CountSpoiled(this->integration_, 13, 2000);
  other.join();
  EXPECT_EQ(spoiled[0], 0);
  EXPECT_EQ(spoiled[1], 0);
  EXPECT_EQ(this->allocator_.Statistics().allocated_bytes, 0);
}

TYPED_TEST_P(IntegrationContractTest, AnotherThreadMayFree) {
  const Filled filled = AllocateFilled(this->integration_, 3000, 5);
  std::thread([&] {
    EXPECT_TRUE(filled.IsIntact());
    this->integration_.Free(filled.memory, filled.bytes, 256);
  }).join();
  EXPECT_EQ(this->allocator_.Statistics().allocated_bytes, 0);
}

TYPED_TEST_P(IntegrationContractTest, TwoAreEqualWhereOneFreesWhatTheOtherAllocated) {
  TypeParam same(this->allocator_);
  TypeParam foreign(SharedAllocator::OpenHost(this->kCapacity));
  EXPECT_TRUE(this->integration_.Equals(this->integration_));
  EXPECT_TRUE(this->integration_.Equals(same));
  EXPECT_TRUE(same.Equals(this->integration_));
  EXPECT_FALSE(this->integration_.Equals(foreign));
  EXPECT_FALSE(foreign.Equals(this->integration_));
  same.Free(this->integration_.Allocate(1000, 8), 1000, 8);
  EXPECT_EQ(this->allocator_.Statistics().allocated_bytes, 0);
}

// An allocator that the program opened is there as long as an integration to it is.
TYPED_TEST_P(IntegrationContractTest, AnIntegrationKeepsItsAllocator) {
  auto integration = std::make_unique<TypeParam>(SharedAllocator::OpenHost(this->kCapacity));
  const Filled filled = AllocateFilled(*integration, 2 * this->kMiB, 9);
  EXPECT_TRUE(filled.IsIntact());
  integration->Free(filled.memory, filled.bytes, 256);
}

REGISTER_TYPED_TEST_SUITE_P(IntegrationContractTest, ZeroBytesAreNothingOrABlock, MemoryIsAlignedAsAsked,
                            BlocksDoNotOverlapAndKeepTheirBytes, WhatIsFreedServesTheNextRequest,
                            OutOfMemoryIsABadAllocWithItsReasonAndChangesNothing,
                            WhatIsCachedMakesRoomBeforeARequestFails, TwoThreadsMayUseIt, AnotherThreadMayFree,
                            TwoAreEqualWhereOneFreesWhatTheOtherAllocated, AnIntegrationKeepsItsAllocator);

}  // namespace ashlar

#endif  // ASHLAR_TESTS_INTEGRATIONS_INTEGRATION_CONTRACT_H_
