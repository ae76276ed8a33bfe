// Memory by the runtime's calls.
#include <cstring>
#include <string>
#include <vector>

#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

using MemoryTest = InHollowTest;

TEST_F(MemoryTest, MallocTakesWholePagesAndGivesThemBack) {
  Run({"total_bytes=104857600"}, [] {
    EXPECT_EQ(UsedBytes(), 0U);
    void* large = Malloc(3 * kMiB);
    void* small = Malloc(1);
    void* smaller = Malloc(100);
    EXPECT_EQ(UsedBytes(), 6 * kMiB);
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(large) % (2 * kMiB), 0U);
    EXPECT_EQ(static_cast<char*>(smaller) - static_cast<char*>(small), 512);
    void* none = small;
    EXPECT_EQ(cudaMalloc(&none, 0), kSuccess);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(cudaFree(nullptr), kSuccess);
    EXPECT_EQ(cudaFree(large), kSuccess);
    EXPECT_EQ(cudaFree(large), kInvalidValue);
    EXPECT_EQ(cudaFree(static_cast<char*>(small) + 1), kInvalidValue);
    EXPECT_EQ(cudaFree(small), kSuccess);
    EXPECT_EQ(cudaFree(smaller), kSuccess);
    EXPECT_EQ(UsedBytes(), 0U);
    EXPECT_EQ(cudaMalloc(nullptr, 10), kInvalidValue);
  });
}

TEST_F(MemoryTest, OutOfMemoryIsSaidAndRemembered) {
  Run({"total_bytes=104857600", "context_bytes=10485760"}, [] {
    EXPECT_EQ(UsedBytes(), 10 * kMiB) << "the context";
    void* all = Malloc(90 * kMiB);
    void* none = all;
    EXPECT_EQ(cudaMalloc(&none, 1), kOutOfMemory);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(cudaPeekAtLastError(), kOutOfMemory);
    EXPECT_EQ(cudaGetLastError(), kOutOfMemory);
    EXPECT_EQ(cudaGetLastError(), kSuccess);
    EXPECT_STREQ(cudaGetErrorName(kOutOfMemory), "cudaErrorMemoryAllocation");
    EXPECT_STREQ(cudaGetErrorString(kOutOfMemory), "out of memory");
    EXPECT_EQ(cudaFree(all), kSuccess);
    EXPECT_EQ(cudaMalloc(&none, 90 * kMiB), kSuccess);
    EXPECT_EQ(cudaMalloc(&none, ~std::size_t{0}), kOutOfMemory);
  });
  const nlohmann::json device = Report()["devices"][0];
  EXPECT_EQ(device["peak_bytes"], 100 * kMiB);
  EXPECT_EQ(device["used_at_end_bytes"], 100 * kMiB);
  EXPECT_EQ(device["out_of_memory"], 2);
}

TEST_F(MemoryTest, RowsArePitched) {
  Run({}, [] {
    void* rows = nullptr;
    std::size_t pitch = 0;
    EXPECT_EQ(cudaMallocPitch(&rows, &pitch, 1000, 4), kSuccess);
    EXPECT_EQ(pitch, 1024U);
    abi::PitchedPtr box = {};
    EXPECT_EQ(cudaMalloc3D(&box, {100, 3, 5}), kSuccess);
    EXPECT_EQ(box.pitch, 512U);
    EXPECT_EQ(box.xsize, 100U);
    EXPECT_EQ(box.ysize, 3U);
    const std::string text = "one..two..";
    EXPECT_EQ(cudaMemcpy2D(rows, pitch, text.data(), 5, 3, 2, kDefaultCopy), kSuccess);
    EXPECT_EQ(ReadText(rows, 3) + ReadText(static_cast<char*>(rows) + pitch, 3), "onetwo");
    EXPECT_EQ(cudaMallocPitch(&rows, &pitch, std::size_t{1} << 40, std::size_t{1} << 40), kOutOfMemory);
  });
}

// As an H200 refuses them, in place of what a copy would do to the program.
TEST_F(MemoryTest, ACopyIsOfItsKindAndInsideWhatIsAllocated) {
  static constexpr int kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kInvalidDirection = 21;
  Run({}, [] {
    char here[100] = {}, there[100] = {};
    void* block = Malloc(100);
    EXPECT_EQ(cudaMemcpy(block, here, 100, kHostToDevice), kSuccess);
    EXPECT_EQ(cudaMemcpy(block, here, 4096, kHostToDevice), kInvalidValue) << "past its end";
    EXPECT_EQ(cudaMemcpy(reinterpret_cast<void*>(0x700000000000), here, 8, kHostToDevice), kInvalidValue) << "nobody's";
    EXPECT_EQ(cudaMemcpy(block, here, 8, kDeviceToHost), kInvalidValue);
    EXPECT_EQ(cudaMemcpy(there, here, 8, kHostToDevice), kInvalidValue);
    EXPECT_EQ(cudaMemcpy(there, here, 8, kHostToHost), kSuccess);
    EXPECT_EQ(cudaMemcpy(there, here, 8, kDefaultCopy), kSuccess);
    EXPECT_EQ(cudaMemcpy(block, here, 8, 9), kInvalidDirection);
    EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, kDefaultCopy), kSuccess);
    EXPECT_EQ(cudaMemset(here, 0, 8), kInvalidValue);
    EXPECT_EQ(cudaMemset(block, 0, std::size_t{1} << 30), kInvalidValue);
    void* pinned = nullptr;
    EXPECT_EQ(cudaMallocHost(&pinned, 100), kSuccess);
    EXPECT_EQ(cudaMemcpy(pinned, here, 8, kHostToDevice), kSuccess) << "the device reaches it";
  });
}

// The figure of an H200 for a stack of 64 KiB.
TEST_F(MemoryTest, AStackTakesMemoryForEveryThreadThatCanBeThere) {
  Run({"total_bytes=150109880320", "sm_count=132", "threads_per_sm=2048"}, [] {
    std::size_t bytes = 0;
    EXPECT_EQ(cudaDeviceGetLimit(&bytes, 0), kSuccess);
    EXPECT_EQ(bytes, 1024U);
    EXPECT_EQ(cudaDeviceSetLimit(0, 65536), kSuccess);
    EXPECT_EQ(cudaDeviceGetLimit(&bytes, 0), kSuccess);
    EXPECT_EQ(bytes, 65536U);
    EXPECT_EQ(UsedBytes(), 17439916032U);
    EXPECT_EQ(cudaDeviceSetLimit(0, std::size_t{1} << 20), kOutOfMemory);
    EXPECT_EQ(cudaDeviceSetLimit(2, 256 * kMiB), kSuccess) << "malloc's heap";
    EXPECT_EQ(UsedBytes(), 17439916032U);
    EXPECT_EQ(cudaDeviceSetLimit(0, 1024), kSuccess);
    EXPECT_EQ(UsedBytes(), 0U);
    EXPECT_EQ(cudaDeviceSetLimit(99, 1), kInvalidValue);
  });
}

TEST_F(MemoryTest, AttributesTellWhatAnAddressIs) {
  Run({"devices=2"}, [] {
    void *device = Malloc(100), *managed = nullptr, *host = nullptr, *elsewhere = nullptr;
    int own = 0;
    EXPECT_EQ(cudaMallocManaged(&managed, 100, 1), kSuccess);
    EXPECT_EQ(cudaMallocHost(&host, 100), kSuccess);
    EXPECT_EQ(cudaSetDevice(1), kSuccess);
    elsewhere = Malloc(3 * kMiB);
    const auto expect = [](const void* pointer, int type, int on) {
      struct {  // CUDA 13's has eight reserved longs
        abi::PointerAttributes attributes;
        long reserved[8];
      } out = {};
      EXPECT_EQ(cudaPointerGetAttributes(&out.attributes, pointer), kSuccess);
      EXPECT_EQ(out.attributes.type, type);
      EXPECT_EQ(out.attributes.device, on);
      if (type == 2) {
        EXPECT_EQ(out.attributes.device_pointer, pointer);
      }
    };
    expect(&own, 0, -2);
    expect(host, 1, 0);
    expect(static_cast<char*>(device) + 99, 2, 0);
    expect(static_cast<char*>(device) + 100, 0, -2);
    expect(managed, 3, 0);
    expect(static_cast<char*>(elsewhere) + 2 * kMiB, 2, 1);
    EXPECT_EQ(cudaFree(elsewhere), kSuccess);
    expect(elsewhere, 0, -2);
  });
}

TEST_F(MemoryTest, HostMemoryIsRealAndCounted) {
  Run({}, [] {
    void *host = nullptr, *seen = nullptr;
    unsigned flags = 0;
    EXPECT_EQ(cudaHostAlloc(&host, 3000, 2), kSuccess);
    std::memset(host, 'h', 3000);
    EXPECT_EQ(cudaHostGetFlags(&flags, host), kSuccess);
    EXPECT_EQ(flags, 2U);
    EXPECT_EQ(cudaHostGetDevicePointer(&seen, static_cast<char*>(host) + 7, 0), kSuccess);
    EXPECT_EQ(seen, static_cast<char*>(host) + 7);
    std::vector<char> own(5000);
    EXPECT_EQ(cudaHostUnregister(own.data()), kNotRegistered);
    EXPECT_EQ(cudaHostRegister(own.data(), own.size(), 0), kSuccess);
    EXPECT_EQ(cudaHostRegister(own.data(), own.size(), 0), kAlreadyRegistered);
    EXPECT_EQ(cudaFreeHost(own.data()), kInvalidValue);
    EXPECT_EQ(cudaHostUnregister(own.data()), kSuccess);
    EXPECT_EQ(cudaFreeHost(host), kSuccess);
    EXPECT_EQ(cudaFreeHost(host), kInvalidValue);
    EXPECT_EQ(cudaHostGetDevicePointer(&seen, own.data(), 0), kInvalidValue);
    EXPECT_EQ(UsedBytes(), 0U);
  });
  EXPECT_EQ(Report()["pinned_peak_bytes"], 8000);
}

TEST_F(MemoryTest, CopiesOfKnownBytesAreReal) {
  Run({"real_bytes=1000"}, [] {
    void *from = Malloc(4000), *to = Malloc(4000);
    WriteText(from, "text that is real");
    EXPECT_EQ(cudaMemcpy(to, from, 17, kDefaultCopy), kSuccess);
    EXPECT_EQ(ReadText(to, 17), "text that is real");
    EXPECT_EQ(cudaMemset(static_cast<char*>(to) + 5, 'x', 4), kSuccess);
    EXPECT_EQ(ReadText(to, 17), "text xxxx is real");
    EXPECT_EQ(cudaMemcpy(to, from, std::size_t{1} << 40, kDefaultCopy), kInvalidValue) << "beyond what is allocated";
  });
  EXPECT_EQ(Report()["made_up_total"], 0);
}

TEST_F(MemoryTest, WhatOnlyAKernelWroteIsMadeUp) {
  Run({"real_bytes=1000", "values=ones"}, [] {
    void* device = Malloc(4000);
    WriteText(device, "ab");
    EXPECT_EQ(ReadText(device, 4), "ab\1\1");
    EXPECT_EQ(cudaMemset(device, 'x', 1001), kSuccess) << "more than is real";
    EXPECT_EQ(ReadText(device, 2), "\1\1");
    EXPECT_EQ(cudaFree(device), kSuccess);
    device = Malloc(4000);
    WriteText(device, "z");
    EXPECT_EQ(ReadText(device, 1), "z");
  });
  const nlohmann::json report = Report();
  EXPECT_EQ(report["made_up_total"], 2);
  std::uint64_t bytes = 0;
  for (const nlohmann::json& line : report["made_up"]) bytes += line["bytes"].get<std::uint64_t>();
  EXPECT_EQ(bytes, 4U);
}

TEST_F(MemoryTest, RandomValuesAreTheSameInEachRun) {
  std::string texts[3];
  for (int run = 0; run < 3; ++run) {
    const std::string file = folder_.path() + "/values";
    Run({run < 2 ? "values=random:7" : "values=random:8"}, [&] { std::ofstream(file) << ReadText(Malloc(64), 64); });
    std::ifstream in(file);
    std::getline(in, texts[run], '\0');
  }
  EXPECT_EQ(texts[0].size(), texts[1].size());
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
}

TEST_F(MemoryTest, PoolsKeepWhatIsFreedUntilSomethingIsSynchronised) {
  Run({}, [] {
    void *stream = NewStream(), *block = nullptr, *pool = nullptr;
    EXPECT_EQ(cudaMallocAsync(&block, 5 * kMiB, stream), kSuccess);
    EXPECT_EQ(UsedBytes(), 32 * kMiB);
    EXPECT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), kSuccess);
    std::uint64_t bytes = 0;
    constexpr int kReleaseThreshold = 4, kReserved = 5, kUsed = 7;
    EXPECT_EQ(cudaMemPoolGetAttribute(pool, kUsed, &bytes), kSuccess);
    EXPECT_EQ(bytes, 5 * kMiB);
    std::uint64_t keep = 64 * kMiB;
    EXPECT_EQ(cudaMemPoolSetAttribute(pool, kReleaseThreshold, &keep), kSuccess);
    EXPECT_EQ(cudaFreeAsync(block, stream), kSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), kSuccess);
    EXPECT_EQ(UsedBytes(), 32 * kMiB) << "below the threshold";
    EXPECT_EQ(cudaMemPoolTrimTo(pool, 0), kSuccess);
    EXPECT_EQ(cudaMemPoolGetAttribute(pool, kReserved, &bytes), kSuccess);
    EXPECT_EQ(bytes, 0U);
    EXPECT_EQ(UsedBytes(), 0U);
  });
}

TEST_F(MemoryTest, APoolOfTheProgramsOwn) {
  Run({}, [] {
    abi::PoolProps props = {};
    props.allocation_type = 1;
    props.location = {1, 0};
    void *pool = nullptr, *current = nullptr, *fallback = nullptr, *block = nullptr;
    ASSERT_EQ(cudaMemPoolCreate(&pool, &props), kSuccess);
    EXPECT_EQ(cudaDeviceGetDefaultMemPool(&fallback, 0), kSuccess);
    EXPECT_EQ(cudaDeviceSetMemPool(0, pool), kSuccess);
    EXPECT_EQ(cudaDeviceGetMemPool(&current, 0), kSuccess);
    EXPECT_EQ(current, pool);
    EXPECT_EQ(cudaMallocAsync(&block, 100, nullptr), kSuccess);
    std::uint64_t used = 0;
    EXPECT_EQ(cudaMemPoolGetAttribute(pool, 7, &used), kSuccess);
    EXPECT_EQ(used, 100U);
    EXPECT_EQ(cudaFree(block), kSuccess) << "cudaFree takes memory of a pool as well";
    EXPECT_EQ(cudaMemPoolDestroy(pool), kSuccess);
    EXPECT_EQ(cudaDeviceGetMemPool(&current, 0), kSuccess);
    EXPECT_EQ(current, fallback);
    EXPECT_EQ(cudaMallocFromPoolAsync(&block, 100, pool, nullptr), kInvalidValue);
    EXPECT_EQ(cudaMemPoolDestroy(fallback), kInvalidValue);
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
