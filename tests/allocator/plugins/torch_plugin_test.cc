// libashlar_torch.so as PyTorch calls it, over the hollow device, without PyTorch. docs/library/integrations/torch.md
// has what PyTorch itself showed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "allocator/plugins/torch/plugin.h"
#include "tests/hollow/client/in_hollow.h"

namespace ashlar::torch {
namespace {

using hollow::client::UsedBytes;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kMiB = std::size_t{1} << 20;
void* const kSide = reinterpret_cast<void*>(std::uintptr_t{0x51de});

// A function of a process that has used no allocator yet: a device of 1 GiB, and no context.
class TorchPluginTest : public hollow::client::InHollowTest {
 protected:
  void Run(const std::function<void()>& program) {
    unsetenv("ASHLAR_CONF");
    InHollowTest::Run({"total_bytes=1073741824", "devices=2"}, program);
  }
};

std::uint64_t Statistic(std::uint64_t ashlar_statistics::*which, int device = 0) {
  ashlar_statistics statistics = {};
  statistics.struct_size = sizeof(statistics);
  EXPECT_EQ(ashlar_get_statistics(ashlar_torch_open_allocator(device), &statistics), ASHLAR_OK);
  return statistics.*which;
}

TEST_F(TorchPluginTest, MemoryIsCachedAndGoesBackAtTheReset) {
  Run([] {
    EXPECT_EQ(ashlar_torch_open_allocator(0), nullptr) << "nothing opens before it is used";
    ashlar_torch_init(2);
    ashlar_torch_reset();
    EXPECT_EQ(ashlar_torch_open_allocator(0), nullptr);
    EXPECT_EQ(ashlar_torch_alloc(0, 0, nullptr), nullptr);
    void* block = ashlar_torch_alloc(30 * kMiB, 0, nullptr);
    ashlar_torch_free(block, 30 * kMiB, 0, nullptr);
    EXPECT_EQ(UsedBytes(), 30 * kMiB);
    EXPECT_EQ(ashlar_torch_alloc(29 * kMiB, 0, nullptr), block);
    ashlar_torch_free(block, 29 * kMiB, 0, nullptr);
    ashlar_torch_free(nullptr, 0, 0, nullptr);
    ashlar_torch_reset();
    EXPECT_EQ(UsedBytes(), 0U);
  });
}

TEST_F(TorchPluginTest, DevicesHaveAnAllocatorEach) {
  Run([] {
    void* first = ashlar_torch_alloc(30 * kMiB, 1, nullptr);
    EXPECT_EQ(ashlar_torch_open_allocator(0), nullptr);
    EXPECT_EQ(ashlar_device(ashlar_torch_open_allocator(1)), 1);
    void* second = ashlar_torch_alloc(40 * kMiB, 0, nullptr);
    EXPECT_EQ(Statistic(&ashlar_statistics::allocated_bytes, 1), 30 * kMiB);
    EXPECT_EQ(Statistic(&ashlar_statistics::allocated_bytes, 0), 40 * kMiB);
    ashlar_torch_free(first, 30 * kMiB, 1, nullptr);
    ashlar_torch_free(second, 40 * kMiB, 0, nullptr);
    ashlar_torch_reset();
    EXPECT_EQ(Statistic(&ashlar_statistics::reserved_bytes, 1), 0U);
    EXPECT_EQ(Statistic(&ashlar_statistics::reserved_bytes, 0), 0U);
    EXPECT_THROW(ashlar_torch_alloc(kMiB, 7, nullptr), std::exception);
  });
}

TEST_F(TorchPluginTest, NoMemoryIsThrownToTheWholeProcessAndNullToAPool) {
  Run([] {
    static int device_told = -1;
    static std::size_t bytes_told = 0;
    ashlar_torch_observe(nullptr, [](int device, std::size_t bytes) { device_told = device, bytes_told = bytes; });
    void* block = ashlar_torch_alloc(800 * kMiB, 0, nullptr);
    try {
      ashlar_torch_alloc(300 * kMiB, 0, nullptr);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::bad_alloc& error) {
      EXPECT_THAT(error.what(), AllOf(StartsWith("CUDA out of memory. GPU 0: "), HasSubstr("300.00 MiB requested")));
    }
    EXPECT_EQ(device_told, 0);
    EXPECT_EQ(bytes_told, 300 * kMiB);
    bytes_told = 0;
    EXPECT_EQ(ashlar_torch_segment_alloc(300 * kMiB, 0, nullptr), nullptr);
    EXPECT_EQ(ashlar_torch_segment_alloc(300 * kMiB, 9, nullptr), nullptr);
    EXPECT_EQ(bytes_told, 0U) << "a pool's null is no failure yet";
    ashlar_torch_free(block, 800 * kMiB, 0, nullptr);
    void* segment = ashlar_torch_segment_alloc(300 * kMiB, 0, nullptr);
    EXPECT_NE(segment, nullptr);
    ashlar_torch_segment_free(segment, 300 * kMiB, 0, nullptr);
    EXPECT_EQ(UsedBytes(), 0U) << "what a pool gives back goes back to the device";
  });
}

TEST_F(TorchPluginTest, TheFractionOfTheMemory) {
  Run([] {
    ashlar_torch_memory_fraction(0.25, 0);
    EXPECT_THROW(ashlar_torch_alloc(300 * kMiB, 0, nullptr), std::bad_alloc);
    ashlar_torch_free(ashlar_torch_alloc(200 * kMiB, 0, nullptr), 200 * kMiB, 0, nullptr);
    EXPECT_THROW(ashlar_torch_memory_fraction(1.5, 0), std::runtime_error);
  });
}

TEST_F(TorchPluginTest, ABlockThatAnotherStreamUsesWaitsForIt) {
  Run([] {
    void* side = hollow::client::NewStream();
    void* block = ashlar_torch_alloc(30 * kMiB, 0, nullptr);
    ashlar_torch_record_stream(block, side);
    ashlar_torch_record_stream(nullptr, side);
    int foreign = 0;
    ashlar_torch_record_stream(&foreign, side);  // passed over
    ashlar_torch_free(block, 30 * kMiB, 0, nullptr);
    EXPECT_EQ(Statistic(&ashlar_statistics::allocated_bytes), 0U);
    EXPECT_EQ(Statistic(&ashlar_statistics::active_bytes), 30 * kMiB) << "until its event is done";
    ashlar_torch_free(ashlar_torch_alloc(kMiB, 0, nullptr), kMiB, 0, nullptr);
    EXPECT_EQ(Statistic(&ashlar_statistics::active_bytes), 0U);
  });
}

TEST_F(TorchPluginTest, TheBaseOfABlockIsItsSegment) {
  Run([] {
    void* first = ashlar_torch_alloc(2 * kMiB, 0, nullptr);
    void* second = ashlar_torch_alloc(3 * kMiB, 0, nullptr);
    std::size_t bytes = 0;
    EXPECT_EQ(ashlar_torch_base_alloc(second, &bytes), first);
    EXPECT_EQ(bytes, 20 * kMiB);
    EXPECT_EQ(ashlar_torch_base_alloc(second, nullptr), first);
    int foreign = 0;
    bytes = 7;
    EXPECT_EQ(ashlar_torch_base_alloc(&foreign, &bytes), &foreign);
    EXPECT_EQ(bytes, 7U);
  });
}

TEST_F(TorchPluginTest, ACapturesPoolTakesTheStreamsOfItsFilter) {
  Run([] {
    const PoolId pool = {5, 0};
    const ashlar_pool same = {5, 0};
    ashlar_torch_begin_allocate_to_pool(0, pool, [](void* stream) { return stream == kSide; });
    EXPECT_THROW(ashlar_torch_begin_allocate_to_pool(0, pool, [](void*) { return true; }), std::runtime_error);
    ashlar_allocator* allocator = ashlar_torch_open_allocator(0);
    EXPECT_EQ(ashlar_pool_users(allocator, same), 1U);
    void* outside = ashlar_torch_alloc(30 * kMiB, 0, nullptr);
    void* captured = ashlar_torch_alloc(40 * kMiB, 0, kSide);
    ashlar_torch_end_allocate_to_pool(0, pool);
    EXPECT_THROW(ashlar_torch_end_allocate_to_pool(0, pool), std::runtime_error);
    ashlar_torch_free(outside, 30 * kMiB, 0, nullptr);
    ashlar_torch_free(captured, 40 * kMiB, 0, kSide);
    ashlar_torch_reset();
    EXPECT_EQ(UsedBytes(), 40 * kMiB) << "the graph may use it again";
    ashlar_torch_release_pool(0, pool);
    ashlar_torch_reset();
    EXPECT_EQ(UsedBytes(), 0U);
    EXPECT_THROW(ashlar_torch_release_pool(0, pool), std::runtime_error);
  });
}

TEST_F(TorchPluginTest, AThreadsPoolIsItsOwn) {
  Run([] {
    void* first = ashlar_torch_alloc(30 * kMiB, 0, nullptr);
    ashlar_torch_free(first, 30 * kMiB, 0, nullptr);
    ashlar_allocator* allocator = ashlar_torch_open_allocator(0);
    ashlar_pool pool = {};
    EXPECT_EQ(ashlar_create_pool(allocator, &pool), ASHLAR_OK);
    EXPECT_EQ(ashlar_torch_begin_thread_pool(0, pool), ASHLAR_OK);
    EXPECT_NE(ashlar_torch_alloc(30 * kMiB, 0, nullptr), first);
    std::thread([&] { EXPECT_EQ(ashlar_torch_alloc(30 * kMiB, 0, nullptr), first); }).join();
    EXPECT_EQ(ashlar_end_pool(allocator, pool), ASHLAR_OK);
    EXPECT_EQ(ashlar_torch_begin_thread_pool(9, pool), ASHLAR_INVALID_ARGUMENT);
  });
}

}  // namespace
}  // namespace ashlar::torch
