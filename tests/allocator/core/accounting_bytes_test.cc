// What the allocator's own accounting take of host memory, counted to the byte: what its destruction gives back. A
// program of its own, because it counts every operator new and delete of the process.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"

namespace {

std::atomic<std::int64_t> held_bytes{0};  // as asked for

constexpr std::size_t kLeastAlignment = 16;

// What was asked for stands before the memory.
void* Make(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole_bytes = (bytes + alignment - 1) / alignment * alignment + alignment;
  char* memory = static_cast<char*>(std::aligned_alloc(alignment, whole_bytes));
  if (memory == nullptr) throw std::bad_alloc();
  memory += alignment;
  std::memcpy(memory - sizeof(bytes), &bytes, sizeof(bytes));
  held_bytes += static_cast<std::int64_t>(bytes);
  return memory;
}
void Return(void* pointer, std::size_t alignment) {
  if (pointer == nullptr) return;
  char* memory = static_cast<char*>(pointer);
  std::size_t bytes = 0;
  std::memcpy(&bytes, memory - sizeof(bytes), sizeof(bytes));
  held_bytes -= static_cast<std::int64_t>(bytes);
  std::free(memory - alignment);
}

}  // namespace

void* operator new(std::size_t bytes) { return Make(bytes, kLeastAlignment); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Make(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { Return(memory, kLeastAlignment); }
void operator delete(void* memory, std::size_t) noexcept { Return(memory, kLeastAlignment); }
void operator delete(void* memory, std::align_val_t alignment) noexcept {
  Return(memory, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  Return(memory, static_cast<std::size_t>(alignment));
}

namespace ashlar::core {
namespace {

struct Held {
  std::uint64_t streams = 1;
  std::size_t live = 0;    // blocks
  std::size_t cached = 0;  // blocks that are free, no two of them neighbours
};

constexpr std::uint64_t kBlockBytes = 48 * kKiB;

// Every other block is freed, as far as there are to be free ones; live blocks lie between them.
std::int64_t AccountingBytes(const std::string& conf, bool is_by_address, const Held& held) {
  device::SimDeviceOptions device_options;
  device_options.capacity_bytes = 80 * kGiB;
  device::SimDevice device(device_options);
  std::optional<CachingAllocator> allocator;
  allocator.emplace(&device, *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
  allocator->SetFailureReports(false);
  std::vector<std::pair<std::uint64_t, Block*>> blocks;
  blocks.reserve(held.live + held.cached);
  for (std::size_t i = 0; i < held.live + held.cached; ++i) {
    const Stream stream{i * held.streams / (held.live + held.cached)};
    if (is_by_address) {
      blocks.emplace_back(*allocator->AllocateAddress(kBlockBytes, stream), nullptr);
    } else {
      blocks.emplace_back(0, *allocator->Allocate(kBlockBytes, stream));
    }
  }
  for (std::size_t i = 0; i < held.cached; ++i) {
    const auto& [address, block] = blocks[2 * i];
    if (is_by_address) {
      EXPECT_TRUE(allocator->FreeAddress(address));
    } else {
      allocator->Free(block);
    }
  }
  allocator->ResetPeaks();
  const std::int64_t before = held_bytes;
  allocator.reset();
  return before - held_bytes;
}

struct Bounds {
  const char* conf;
  double none;                                    // with one block
  double live_by_block, live_by_address, cached;  // bytes a block
  double stream;                                  // and a stream with 98 blocks,
  double small_stream;                            // and one with four
};

class AccountingBytesTest : public testing::TestWithParam<Bounds> {};

constexpr std::size_t kBlocks = 100'000;

double BytesOf(const std::string& conf, bool is_by_address, const Held& held) {
  return static_cast<double>(AccountingBytes(conf, is_by_address, held));
}

TEST_P(AccountingBytesTest, ABlockTakesAtMostSoMuch) {
  const std::string conf = GetParam().conf;
  const double none = BytesOf(conf, false, {1, 1, 0});
  const double by_block = BytesOf(conf, false, {1, kBlocks, 0}) - none;
  const double by_address = BytesOf(conf, true, {1, kBlocks, 0}) - none;
  const double with_cached = BytesOf(conf, false, {1, kBlocks, kBlocks}) - none - by_block;
  std::printf("%s: %.0f bytes, and of each live block %.1f, by address %.1f, of a cached one %.1f\n", conf.c_str(),
              none, by_block / kBlocks, by_address / kBlocks, with_cached / kBlocks);
  EXPECT_LE(none, GetParam().none);
  EXPECT_LE(by_block / kBlocks, GetParam().live_by_block);
  EXPECT_LE(by_address / kBlocks, GetParam().live_by_address);
  EXPECT_LE(with_cached / kBlocks, GetParam().cached);
}

// So many blocks on 1,024 streams rather than on one.
double BytesOfStream(const std::string& conf, std::size_t live, std::size_t cached) {
  constexpr std::uint64_t kStreams = 1024;
  const double of_one = BytesOf(conf, true, {1, live, cached});
  const double of_many = BytesOf(conf, true, {kStreams, live, cached});
  const double per_stream = (of_many - of_one) / (kStreams - 1);
  std::printf("%s: %zu blocks on one stream %.0f bytes, on 1,024 streams %.0f, %.0f a stream\n", conf.c_str(),
              live + cached, of_one, of_many, per_stream);
  return per_stream;
}
TEST_P(AccountingBytesTest, AStreamTakesAtMostSoMuch) {
  EXPECT_LE(BytesOfStream(GetParam().conf, 60'000, 40'000), GetParam().stream);
  EXPECT_LE(BytesOfStream(GetParam().conf, 3 * 1024, 1024), GetParam().small_stream);
}

INSTANTIATE_TEST_SUITE_P(Settings, AccountingBytesTest,
                         testing::Values(Bounds{"", 2000, 82, 104, 102, 3600, 950},
                                         Bounds{"expandable_segments:True", 2100, 77, 99, 98, 3450, 1850},
                                         Bounds{"policy:ashlar", 2100, 77, 99, 98, 3450, 1850}),
                         [](const auto& param) {
                           const std::string conf = param.param.conf;
                           return conf.empty() ? "plain" : conf.substr(0, conf.find_first_of("_:"));
                         });

}  // namespace
}  // namespace ashlar::core
