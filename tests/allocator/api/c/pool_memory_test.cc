// Memory of a pool that is not the device's, and pages for other processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

#include "ashlar.h"
#include "tests/allocator/api/c/c_api_fixture.h"

namespace {

using ashlar::tests::CApiTest;
using ashlar::tests::kMiB;

// A heap that counts what it has given.
struct OwnHeap {
  std::vector<void*> given;
  int released = 0;
};
void* GiveOwn(void* context, std::size_t bytes) {
  auto& heap = *static_cast<OwnHeap*>(context);
  if (bytes > 100 * kMiB) return nullptr;
  return heap.given.emplace_back(std::aligned_alloc(512, bytes));
}
void TakeOwn(void* context, void* memory) {
  std::erase(static_cast<OwnHeap*>(context)->given, memory);
  std::free(memory);
}
void ReleaseOwn(void* context) { ++static_cast<OwnHeap*>(context)->released; }

TEST_F(CApiTest, APoolHasMemoryOfItsOwn) {
  Open();
  OwnHeap heap;
  const ashlar_pool pool = {0, 6};
  const auto set = [&](ashlar_pool to) {
    return ashlar_set_pool_memory(allocator_, to, GiveOwn, TakeOwn, &heap, ReleaseOwn);
  };
  EXPECT_EQ(set({0, 0}), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(heap.released, 1) << "the call has failed";
  EXPECT_EQ(ashlar_set_pool_memory(allocator_, pool, GiveOwn, nullptr, &heap, ReleaseOwn), ASHLAR_INVALID_ARGUMENT);
  EXPECT_THAT(ashlar_last_error(), ::testing::HasSubstr("a function is NULL"));
  EXPECT_EQ(heap.released, 2);
  ASSERT_EQ(set(pool), ASHLAR_OK) << ashlar_last_error();
  EXPECT_EQ(set(pool), ASHLAR_FAILED_PRECONDITION);
  EXPECT_EQ(heap.released, 3);
  void* memory = nullptr;
  ASSERT_EQ(ashlar_allocate_in_pool(allocator_, pool, 3 * kMiB, nullptr, &memory), ASHLAR_OK);
  EXPECT_EQ(heap.given, std::vector<void*>{memory});
  void* none = nullptr;
  EXPECT_EQ(ashlar_allocate_in_pool(allocator_, pool, 200 * kMiB, nullptr, &none), ASHLAR_OUT_OF_MEMORY);
  EXPECT_EQ(ashlar_free(allocator_, memory), ASHLAR_OK);
  EXPECT_EQ(ashlar_release_pool(allocator_, pool), ASHLAR_OK);
  EXPECT_EQ(heap.given.size(), 1u) << "the pool keeps it";
  EXPECT_EQ(ashlar_empty_pool(allocator_, pool), ASHLAR_OK);
  EXPECT_TRUE(heap.given.empty());
  EXPECT_EQ(heap.released, 4);
}

TEST_F(CApiTest, APageThatIsNotSharedSaysWhy) {
  Open("report_leaks:False,expandable_segments:True");
  ashlar_shared_page page{};
  page.struct_size = sizeof(page);
  void* const block = Allocate(30 * kMiB);
  EXPECT_NE(ashlar_share_page(allocator_, block, &page), ASHLAR_OK) << "a simulated device has no file";
  EXPECT_THAT(ashlar_last_error(), ::testing::HasSubstr("shares no pages"));
  ashlar_free(allocator_, block);
  EXPECT_EQ(ashlar_share_page(allocator_, block, &page), ASHLAR_INVALID_ARGUMENT) << "no block is there";
}

}  // namespace
