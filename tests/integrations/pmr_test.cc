#include "ashlar/pmr.h"

#include <gmock/gmock.h>

#include <map>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "tests/integrations/integration_contract.h"

namespace ashlar {
namespace {

using testing::ElementsAre;

struct PmrIntegration {
  static constexpr bool kZeroBytesAreNull = false;
  explicit PmrIntegration(SharedAllocator allocator) : resource(std::move(allocator)) {}
  void* Allocate(std::size_t bytes, std::size_t alignment) { return resource.allocate(bytes, alignment); }
  void Free(void* memory, std::size_t bytes, std::size_t alignment) { resource.deallocate(memory, bytes, alignment); }
  bool Equals(const PmrIntegration& other) const { return resource == other.resource; }
  PmrResource resource;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Pmr, IntegrationContractTest, PmrIntegration);

TEST(PmrResourceTest, ContainersOfTheStandardLibraryLiveOnIt) {
  SharedAllocator allocator = SharedAllocator::OpenHost(std::uint64_t{1} << 30);
  PmrResource resource(allocator);
  {
    std::pmr::vector<int> numbers(&resource);
    for (int i = 0; i < 100000; ++i) numbers.push_back(i);
    std::pmr::map<int, std::pmr::string> names(&resource);
    names[1] = "a text that is longer than what a string keeps inside";
    EXPECT_EQ(numbers[99999], 99999);
    EXPECT_EQ(names.at(1).get_allocator().resource(), &resource);
    EXPECT_GE(allocator.Statistics().allocated_bytes, 400000);
    std::pmr::vector<std::pmr::string> moved({"x", "y"}, &resource);
    const std::pmr::vector<std::pmr::string> other(std::move(moved), &resource);
    EXPECT_THAT(other, ElementsAre("x", "y"));
  }
  EXPECT_EQ(allocator.Statistics().allocated_bytes, 0);
}

TEST(PmrResourceTest, IsNotEqualToOtherKinds) {
  PmrResource resource(SharedAllocator::OpenSimulated(std::uint64_t{1} << 30));
  EXPECT_FALSE(resource.is_equal(*std::pmr::new_delete_resource()));
  EXPECT_FALSE(std::pmr::new_delete_resource()->is_equal(resource));
}

TEST(PmrResourceTest, IsAnUpstreamOfTheStandardLibrarysPools) {
  PmrResource resource(SharedAllocator::OpenHost(std::uint64_t{1} << 30));
  {
    std::pmr::unsynchronized_pool_resource pool(&resource);
    std::pmr::synchronized_pool_resource shared(&resource);
    for (std::pmr::memory_resource* const each :
         {static_cast<std::pmr::memory_resource*>(&pool), static_cast<std::pmr::memory_resource*>(&shared)}) {
      std::pmr::vector<double> numbers(each);
      for (int i = 0; i < 100000; ++i) numbers.push_back(i);  // blocks of N bytes, at an alignment of N
      EXPECT_EQ(numbers[99999], 99999);
    }
  }
  EXPECT_EQ(resource.allocator().Statistics().allocated_bytes, 0);
}

}  // namespace
}  // namespace ashlar
