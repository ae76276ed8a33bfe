#include "ashlar/thrust_mr.h"

#include <cstdint>
#include <utility>

#include "tests/integrations/integration_contract.h"

namespace ashlar {
namespace {

struct ThrustIntegration {
  static constexpr bool kZeroBytesAreNull = true;
  explicit ThrustIntegration(SharedAllocator allocator) : resource(std::move(allocator)) {}
  void* Allocate(std::size_t bytes, std::size_t alignment) { return resource.allocate(bytes, alignment).get(); }
  void Free(void* memory, std::size_t bytes, std::size_t alignment) {
    resource.deallocate(ThrustResource::pointer(memory), bytes, alignment);
  }
  bool Equals(const ThrustIntegration& other) const {
    return resource == other.resource && resource.is_equal(other.resource);
  }
  ThrustResource resource;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Thrust, IntegrationContractTest, ThrustIntegration);

TEST(ThrustResourceTest, AllocatorsAreEqualWhereTheirResourcesAre) {
  const SharedAllocator allocator = SharedAllocator::OpenSimulated(std::uint64_t{1} << 30);
  ThrustResource one(allocator);
  ThrustResource same(allocator);
  ThrustResource of_stream(allocator, reinterpret_cast<cudaStream_t>(std::uintptr_t{64}));
  ThrustResource foreign(SharedAllocator::OpenSimulated(std::uint64_t{1} << 30));
  EXPECT_TRUE(ThrustAllocator<int>(&one) == ThrustAllocator<int>(&same));
  EXPECT_FALSE(ThrustAllocator<int>(&one) == ThrustAllocator<int>(&of_stream));
  EXPECT_FALSE(ThrustAllocator<int>(&one) == ThrustAllocator<int>(&foreign));
}

TEST(ThrustResourceTest, MemoryIsOfItsStream) {
  const SharedAllocator allocator = SharedAllocator::OpenSimulated(std::uint64_t{1} << 30);
  ThrustResource one(allocator);
  ThrustResource of_stream(allocator, reinterpret_cast<cudaStream_t>(std::uintptr_t{64}));
  const ThrustResource::pointer memory = one.allocate(4096);
  one.deallocate(memory, 4096);
  EXPECT_NE(of_stream.allocate(4096).get(), memory.get());
  EXPECT_EQ(one.allocate(4096).get(), memory.get());
}

}  // namespace
}  // namespace ashlar
