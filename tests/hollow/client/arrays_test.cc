// Arrays take memory, hold what the host copies to them, and are one for the runtime and the driver.
#include <string>

#include "tests/hollow/client/in_hollow.h"

extern "C" {
int cudaMallocArray(void** array, const ashlar::hollow::abi::ChannelFormat* channels, std::size_t width,
                    std::size_t height, unsigned flags);
int cudaMalloc3DArray(void** array, const ashlar::hollow::abi::ChannelFormat* channels,
                      ashlar::hollow::abi::Extent extent, unsigned flags);
int cudaFreeArray(void* array);
int cudaArrayGetInfo(ashlar::hollow::abi::ChannelFormat* channels, ashlar::hollow::abi::Extent* extent, unsigned* flags,
                     void* array);
int cudaMemcpy2DToArray(void* array, std::size_t byte, std::size_t row, const void* from, std::size_t pitch,
                        std::size_t width, std::size_t height, int kind);
int cudaMemcpy2DFromArray(void* to, std::size_t pitch, const void* array, std::size_t byte, std::size_t row,
                          std::size_t width, std::size_t height, int kind);
int cudaCreateTextureObject(unsigned long long* object, const void* resource, const void* texture, const void* view);
int cuArray3DCreate_v2(void** array, const ashlar::hollow::abi::ArrayDescriptor* form);
int cuArray3DGetDescriptor_v2(ashlar::hollow::abi::ArrayDescriptor* form, void* array);
int cuArrayDestroy(void* array);
}

namespace ashlar::hollow::client {
namespace {

using ArraysTest = InHollowTest;

constexpr abi::ChannelFormat kFourFloats = {32, 32, 32, 32, 2};
constexpr abi::ChannelFormat kBytes = {8, 0, 0, 0, 1};

TEST_F(ArraysTest, TheyTakeTheBytesOfTheirElements) {
  Run({"total_bytes=1073741824"}, [] {
    void *flat = nullptr, *volume = nullptr;
    const std::uint64_t before = UsedBytes();
    EXPECT_EQ(cudaMallocArray(&flat, &kFourFloats, 1024, 512, 0), kSuccess);
    EXPECT_EQ(UsedBytes() - before, 8 * kMiB);
    EXPECT_EQ(cudaMalloc3DArray(&volume, &kBytes, {256, 256, 256}, 0), kSuccess);
    EXPECT_EQ(UsedBytes() - before, 24 * kMiB);
    abi::ChannelFormat channels = {};
    abi::Extent extent = {};
    EXPECT_EQ(cudaArrayGetInfo(&channels, &extent, nullptr, flat), kSuccess);
    EXPECT_EQ(channels.w, 32);
    EXPECT_EQ(channels.kind, 2);
    EXPECT_EQ(extent.height, 512U);
    void* too_large = nullptr;
    EXPECT_EQ(cudaMalloc3DArray(&too_large, &kFourFloats, {1024, 1024, 1024}, 0), kOutOfMemory);
    EXPECT_EQ(cudaFreeArray(flat), kSuccess);
    EXPECT_EQ(cudaFreeArray(flat), kInvalidHandle);
    EXPECT_EQ(cudaFreeArray(volume), kSuccess);
    EXPECT_EQ(UsedBytes(), before);
    const abi::ChannelFormat odd = {24, 0, 0, 0, 1};
    EXPECT_EQ(cudaMallocArray(&flat, &odd, 16, 16, 0), kInvalidValue);
  });
}

TEST_F(ArraysTest, TheyHoldWhatIsCopied) {
  Run({}, [] {
    void* array = nullptr;
    EXPECT_EQ(cudaMallocArray(&array, &kBytes, 4, 3, 0), kSuccess);
    const std::string from = "abcd..efgh..ijkl..";
    EXPECT_EQ(cudaMemcpy2DToArray(array, 0, 0, from.data(), 6, 4, 3, 1), kSuccess);
    std::string to(4, '?');
    EXPECT_EQ(cudaMemcpy2DFromArray(to.data(), 2, array, 1, 1, 2, 2, 2), kSuccess);
    EXPECT_EQ(to, "fgjk");
    EXPECT_EQ(cudaMemcpy2DFromArray(to.data(), 2, array, 3, 1, 2, 2, 2), kInvalidValue) << "past the end of a row";
    unsigned long long object = 0, other = 0;
    EXPECT_EQ(cudaCreateTextureObject(&object, &array, nullptr, nullptr), kSuccess);
    EXPECT_EQ(cudaCreateTextureObject(&other, &array, nullptr, nullptr), kSuccess);
    EXPECT_NE(object, other);
  });
}

TEST_F(ArraysTest, TheDriversAreTheRuntimes) {
  Run({}, [] {
    EXPECT_EQ(cuInit(0), kSuccess);
    EXPECT_EQ(cudaFree(nullptr), kSuccess);
    constexpr int kHalf = 0x10;
    const abi::ArrayDescriptor form = {64, 64, 2, kHalf, 2, 0};
    void* array = nullptr;
    EXPECT_EQ(cuArray3DCreate_v2(&array, &form), kSuccess);
    abi::ArrayDescriptor told = {};
    EXPECT_EQ(cuArray3DGetDescriptor_v2(&told, array), kSuccess);
    EXPECT_EQ(told.depth, 2U);
    abi::ChannelFormat channels = {};
    EXPECT_EQ(cudaArrayGetInfo(&channels, nullptr, nullptr, array), kSuccess);
    EXPECT_EQ(channels.y, 16);
    EXPECT_EQ(cuArrayDestroy(array), kSuccess);
    EXPECT_EQ(cuArrayDestroy(array), kInvalidHandle);
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
