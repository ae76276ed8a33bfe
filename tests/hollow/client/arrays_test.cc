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
int cudaMemcpy2DArrayToArray(void* to, std::size_t to_byte, std::size_t to_row, const void* from, std::size_t from_byte,
                             std::size_t from_row, std::size_t width, std::size_t height, int kind);
int cudaMemcpy3D(const ashlar::hollow::abi::Memcpy3D* params);
int cudaMemcpy3DAsync(const ashlar::hollow::abi::Memcpy3D* params, void* stream);
int cudaMemset3D(ashlar::hollow::abi::PitchedPtr to, int value, ashlar::hollow::abi::Extent extent);
int cudaGraphAddMemcpyNode(void** node, void* graph, void* const* after, std::size_t count,
                           const ashlar::hollow::abi::Memcpy3D* params);
int cuMemcpy2D_v2(const ashlar::hollow::abi::Memcpy2D* params);
int cuMemcpy3D_v2(const ashlar::hollow::abi::DriverMemcpy3D* params);
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

// 4 x 3 x 2 bytes, of which a box of 2 x 2 x 2 is read back.
constexpr abi::Extent kVolume = {4, 3, 2};

void* VolumeOf(const std::string& bytes) {
  void* array = nullptr;
  EXPECT_EQ(cudaMalloc3DArray(&array, &kBytes, kVolume, 0), kSuccess);
  abi::Memcpy3D in = {};
  in.src_ptr = {const_cast<char*>(bytes.data()), 4, 4, 3};
  in.dst_array = array;
  in.extent = kVolume;
  EXPECT_EQ(cudaMemcpy3D(&in), kSuccess);
  return array;
}

TEST_F(ArraysTest, BoxesOfVolumesAreCopied) {
  Run({}, [] {
    void* array = VolumeOf("abcdefghijklABCDEFGHIJKL");
    std::string to(12, '.');
    abi::Memcpy3D out = {};
    out.src_array = array;
    out.src_pos = {1, 1, 0};
    out.dst_ptr = {to.data(), 2, 2, 3};  // slices of three rows, of which the last is left alone
    out.extent = {2, 2, 2};
    EXPECT_EQ(cudaMemcpy3D(&out), kSuccess);
    EXPECT_EQ(to, "fgjk..FGJK..");
    out.src_pos = {1, 2, 0};
    EXPECT_EQ(cudaMemcpy3DAsync(&out, nullptr), kInvalidValue) << "past the last row";
    out.src_pos = {1, 1, 1};
    EXPECT_EQ(cudaMemcpy3D(&out), kInvalidValue) << "past the last slice";
    out.src_pos = {};
    out.src_ptr = {to.data(), 2, 2, 3};
    EXPECT_EQ(cudaMemcpy3D(&out), kInvalidValue) << "two sources";
    // From array to array, then a part of it with the pitch of the rows' own.
    void* other = VolumeOf(std::string(24, '-'));
    abi::Memcpy3D across = {};
    across.src_array = array;
    across.src_pos = {0, 0, 1};
    across.dst_array = other;
    across.dst_pos = {2, 0, 0};
    across.extent = {2, 3, 1};
    EXPECT_EQ(cudaMemcpy3DAsync(&across, nullptr), kSuccess);
    EXPECT_EQ(cudaMemcpy2DArrayToArray(other, 0, 2, array, 2, 0, 2, 1, 3), kSuccess);
    std::string flat(12, '?');
    EXPECT_EQ(cudaMemcpy2DFromArray(flat.data(), 4, other, 0, 0, 4, 3, 2), kSuccess);
    EXPECT_EQ(flat, "--AB--EFcdIJ");
  });
}

TEST_F(ArraysTest, WidthsAreElementsOfTheArray) {
  Run({}, [] {
    void *array = nullptr, *memory = nullptr;
    EXPECT_EQ(cudaMalloc3DArray(&array, &kFourFloats, {2, 1, 1}, 0), kSuccess);
    EXPECT_EQ(cudaMalloc(&memory, 64), kSuccess);
    const float from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    EXPECT_EQ(cudaMemcpy(memory, from, sizeof(from), 1), kSuccess);
    abi::Memcpy3D in = {};
    in.src_ptr = {memory, 32, 32, 1};
    in.src_pos.x = 16;  // of memory in bytes
    in.dst_array = array;
    in.dst_pos.x = 1;
    in.extent = {1, 1, 1};
    EXPECT_EQ(cudaMemcpy3D(&in), kSuccess);
    float to[4] = {};
    EXPECT_EQ(cudaMemcpy2DFromArray(to, 16, array, 16, 0, 16, 1, 2), kSuccess);
    EXPECT_EQ(to[0], 5);
    EXPECT_EQ(to[3], 8);
    void* bytes = VolumeOf(std::string(24, 'x'));
    abi::Memcpy3D across = {};
    across.src_array = bytes;
    across.dst_array = array;
    across.extent = {1, 1, 1};
    EXPECT_EQ(cudaMemcpy3D(&across), kInvalidValue) << "elements of another size";
  });
}

TEST_F(ArraysTest, MoreThanIsRealIsCountedAndNotKept) {
  Run({"real_bytes=16"}, [] {
    void* array = VolumeOf("abcdefghijklABCDEFGHIJKL");
    std::string row(4, '?');
    EXPECT_EQ(cudaMemcpy2DFromArray(row.data(), 4, array, 0, 0, 4, 1, 2), kSuccess);
    EXPECT_EQ(row, std::string(4, '\0'));
  });
}

TEST_F(ArraysTest, ADriversBoxCountsBytes) {
  Run({}, [] {
    EXPECT_EQ(cuInit(0), kSuccess);
    constexpr int kHost = 1, kArray = 3;
    void* array = VolumeOf("abcdefghijklABCDEFGHIJKL");
    std::string to(8, '?');
    abi::DriverMemcpy3D out = {};
    out.src_type = kArray;
    out.src_array = array;
    out.src_x = 2;
    out.src_z = 1;
    out.dst_type = kHost;
    out.dst_host = to.data();
    out.dst_pitch = 2;
    out.dst_height = 2;
    out.width_bytes = 2;
    out.height = 2;
    out.depth = 1;
    EXPECT_EQ(cuMemcpy3D_v2(&out), kSuccess);
    EXPECT_EQ(to, "CDGH????");
    out.src_array = nullptr;
    EXPECT_EQ(cuMemcpy3D_v2(&out), kInvalidValue);
    abi::Memcpy2D in = {};
    in.src_type = kHost;
    in.src_host = "zy";
    in.src_pitch = 2;
    in.dst_type = kArray;
    in.dst_array = array;
    in.dst_y = 2;
    in.width_bytes = 2;
    in.height = 1;
    EXPECT_EQ(cuMemcpy2D_v2(&in), kSuccess);
    EXPECT_EQ(cudaMemcpy2DFromArray(to.data(), 4, array, 0, 2, 4, 1, 2), kSuccess);
    EXPECT_EQ(to.substr(0, 4), "zykl");
  });
}

TEST_F(ArraysTest, NodesOfGraphsAndFillsOfSlices) {
  Run({}, [] {
    void *array = VolumeOf("abcdefghijklABCDEFGHIJKL"), *graph = nullptr, *node = nullptr, *exec = nullptr;
    std::string to(4, '?');
    abi::Memcpy3D out = {};
    out.src_array = array;
    out.src_pos.z = 1;
    out.dst_ptr = {to.data(), 4, 4, 1};
    out.extent = {4, 1, 1};
    EXPECT_EQ(cudaGraphCreate(&graph, 0), kSuccess);
    EXPECT_EQ(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &out), kSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), kSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), kSuccess);
    EXPECT_EQ(to, "ABCD");
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 12), kSuccess);
    EXPECT_EQ(cudaMemcpy(memory, "............", 12, 1), kSuccess);
    EXPECT_EQ(cudaMemset3D({memory, 2, 2, 3}, '#', {1, 2, 2}), kSuccess);
    std::string all(12, '?');
    EXPECT_EQ(cudaMemcpy(all.data(), memory, 12, 2), kSuccess);
    EXPECT_EQ(all, "#.#...#.#...");
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
