#include "ashlar/cuda_mr.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tests/integrations/integration_contract.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

cuda::stream_ref Stream(std::uintptr_t handle) { return cuda::stream_ref(reinterpret_cast<cudaStream_t>(handle)); }

// In the order of a stream, by the words of CCCL 3.1 and later.
struct StreamIntegration {
  static constexpr bool kZeroBytesAreNull = true;
  explicit StreamIntegration(SharedAllocator allocator) : resource(std::move(allocator)) {}
  void* Allocate(std::size_t bytes, std::size_t alignment) { return resource.allocate(Stream(64), bytes, alignment); }
  void Free(void* memory, std::size_t bytes, std::size_t alignment) {
    resource.deallocate(Stream(64), memory, bytes, alignment);
  }
  bool Equals(const StreamIntegration& other) const {
    return resource == other.resource && !(resource != other.resource);
  }
  CudaResource resource;
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaMrOnAStream, IntegrationContractTest, StreamIntegration);

// The same by the words up to 3.0.
struct AsyncIntegration : StreamIntegration {
  using StreamIntegration::StreamIntegration;
  void* Allocate(std::size_t bytes, std::size_t alignment) {
    return resource.allocate_async(bytes, alignment, Stream(64));
  }
  void Free(void* memory, std::size_t bytes, std::size_t alignment) {
    resource.deallocate_async(memory, bytes, alignment, Stream(64));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaMrAsync, IntegrationContractTest, AsyncIntegration);

// Without a stream, by both words.
struct SyncIntegration : StreamIntegration {
  using StreamIntegration::StreamIntegration;
  void* Allocate(std::size_t bytes, std::size_t alignment) { return resource.allocate_sync(bytes, alignment); }
  void Free(void* memory, std::size_t bytes, std::size_t alignment) { resource.deallocate(memory, bytes, alignment); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaMrWithoutAStream, IntegrationContractTest, SyncIntegration);

TEST(CudaResourceTest, MemoryFreedOnAnotherStreamWaitsForIt) {
  SharedAllocator allocator = SharedAllocator::OpenSimulated(std::uint64_t{1} << 30);
  CudaResource resource(allocator);
  resource.deallocate(Stream(128), resource.allocate(Stream(64), 4096), 4096);
  EXPECT_EQ(allocator.Statistics().active_bytes, 4096);
  resource.deallocate(Stream(64), resource.allocate(Stream(64), 8192), 8192);
  EXPECT_EQ(allocator.Statistics().active_bytes, 4096);
}

TEST(CudaResourceTest, TheDefaultAlignmentIsCudasAndAnyMayBeNamed) {
  static_assert(CudaResource::kDefaultAlignment == cuda::mr::default_cuda_malloc_alignment);
  CudaResource resource(SharedAllocator::OpenSimulated(std::uint64_t{1} << 30));
  for (const std::size_t alignment : {std::size_t{512}, std::size_t{1024}, std::size_t{1} << 21}) {
    void* const ordered = resource.allocate(Stream(64), 1, alignment);
    void* const sync = resource.allocate_sync(1, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ordered) % alignment, 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(sync) % alignment, 0);
    resource.deallocate(Stream(64), ordered, 1, alignment);
    resource.deallocate_sync(sync, 1, alignment);
  }
  EXPECT_EQ(resource.allocator().Statistics().allocated_bytes, 0);
  EXPECT_THROW(resource.allocate(Stream(64), 1, 24), CallError);
}

TEST(CudaResourceTest, ThePerThreadDefaultStreamIsRefused) {
  CudaResource resource(SharedAllocator::OpenSimulated(std::uint64_t{1} << 30));
  try {
    resource.allocate(cuda::stream_ref(cudaStreamPerThread), 1);
    FAIL();
  } catch (const CallError& error) {
    EXPECT_THAT(error.what(), HasSubstr("per-thread default stream"));
  }
}

#if CCCL_VERSION < 3001000
TEST(CudaResourceTest, RefsOfTheToolkitHoldIt) {
  SharedAllocator allocator = SharedAllocator::OpenHost(std::uint64_t{1} << 30);
  CudaResource resource(allocator);
  cuda::mr::async_resource_ref<cuda::mr::device_accessible> ref(resource);
  void* const memory = ref.allocate_async(1 << 20, 256, Stream(64));
  EXPECT_EQ(allocator.Statistics().allocated_bytes, 1 << 20);
  ref.deallocate_async(memory, 1 << 20, 256, Stream(64));
  cuda::mr::resource_ref<cuda::mr::device_accessible> plain(resource);
  plain.deallocate(plain.allocate(100, 8), 100, 8);
  EXPECT_EQ(allocator.Statistics().allocated_bytes, 0);
  CudaResource other(SharedAllocator::OpenHost(std::uint64_t{1} << 30));
  EXPECT_TRUE(ref == (cuda::mr::async_resource_ref<cuda::mr::device_accessible>(resource)));
  EXPECT_FALSE(ref == (cuda::mr::async_resource_ref<cuda::mr::device_accessible>(other)));
}
#endif

}  // namespace
}  // namespace ashlar
