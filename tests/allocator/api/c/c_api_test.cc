// The C interface, in libashlar.so: each function, its errors and what becomes of the caller's structs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "allocator/trace/codec.h"
#include "analyzer/formats/input_file.h"
#include "ashlar.h"

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::StrEq;

constexpr std::size_t kMiB = std::size_t{1} << 20;

ashlar_open_options Simulated(const char* conf = "", std::uint64_t capacity_bytes = 1024 * kMiB) {
  return {.struct_size = sizeof(ashlar_open_options),
          .conf = conf,
          .memory = ASHLAR_MEMORY_SIMULATED,
          .device = 0,
          .capacity_bytes = capacity_bytes};
}

// Closed at the end of the test, with what is still allocated.
class CApiTest : public testing::Test {
 protected:
  ~CApiTest() override { ashlar_close(allocator_); }

  void Open(const char* conf = "report_leaks:False") {
    const ashlar_open_options options = Simulated(conf);
    ASSERT_EQ(ashlar_open(&options, &allocator_), ASHLAR_OK) << ashlar_last_error();
  }
  void* Allocate(std::size_t bytes, std::uintptr_t stream = 0) {
    void* memory = nullptr;
    EXPECT_EQ(ashlar_allocate(allocator_, bytes, reinterpret_cast<void*>(stream), &memory), ASHLAR_OK)
        << ashlar_last_error();
    return memory;
  }
  ashlar_statistics Statistics() const {
    ashlar_statistics out{};
    out.struct_size = sizeof(out);
    EXPECT_EQ(ashlar_get_statistics(allocator_, &out), ASHLAR_OK);
    return out;
  }

  ashlar_allocator* allocator_ = nullptr;
};

TEST_F(CApiTest, ServesAndReuses) {
  Open();
  void* first = Allocate(10 * kMiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 512, 0u);
  EXPECT_EQ(Statistics().allocated_bytes, 10 * kMiB);
  EXPECT_EQ(ashlar_free(allocator_, first), ASHLAR_OK);
  EXPECT_EQ(Allocate(10 * kMiB), first);
  EXPECT_EQ(Statistics().device_allocations, 1u);
}

TEST_F(CApiTest, NoBytesAreNoBlock) {
  Open();
  EXPECT_EQ(Allocate(0), nullptr);
  EXPECT_EQ(ashlar_free(allocator_, nullptr), ASHLAR_OK);
  EXPECT_EQ(Statistics().allocations, 0u);
}

TEST_F(CApiTest, OutOfMemorySaysWhereEveryByteIs) {
  Open();
  Allocate(900 * kMiB);
  void* memory = &memory;
  EXPECT_EQ(ashlar_allocate(allocator_, 200 * kMiB, nullptr, &memory), ASHLAR_OUT_OF_MEMORY);
  EXPECT_EQ(memory, nullptr);
  EXPECT_THAT(ashlar_last_error(), StartsWith("out of memory: 200.00 MiB requested"));
  EXPECT_THAT(ashlar_last_error(), HasSubstr("900.00 MiB"));
  EXPECT_EQ(ashlar_allocate(allocator_, SIZE_MAX, nullptr, &memory), ASHLAR_OUT_OF_MEMORY);
  EXPECT_EQ(Statistics().out_of_memory_errors, 1u);
}

TEST_F(CApiTest, ErrorsBelongToTheirThread) {
  Open();
  ashlar_free(allocator_, &allocator_);
  const std::string mine = ashlar_last_error();
  EXPECT_THAT(mine, HasSubstr("ashlar_free: no live block of this allocator begins at 0x"));
  std::thread([this] {
    EXPECT_THAT(ashlar_last_error(), StrEq(""));
    ashlar_record_stream(allocator_, &allocator_, nullptr);
    EXPECT_THAT(ashlar_last_error(), HasSubstr("ashlar_record_stream"));
  }).join();
  EXPECT_EQ(ashlar_last_error(), mine);
}

TEST_F(CApiTest, RecordedStreamsHoldABlock) {
  Open();
  void* block = Allocate(20 * kMiB);
  EXPECT_EQ(ashlar_record_stream(allocator_, block, reinterpret_cast<void*>(7)), ASHLAR_OK);
  EXPECT_EQ(ashlar_free(allocator_, block), ASHLAR_OK);
  EXPECT_EQ(Statistics().active_bytes, 20 * kMiB);  // the stream's work so far is not known to be done
  EXPECT_NE(Allocate(20 * kMiB), block);
  EXPECT_EQ(ashlar_empty_cache(allocator_), ASHLAR_OK);
  EXPECT_EQ(Statistics().active_bytes, 20 * kMiB);
  EXPECT_EQ(ashlar_poll(allocator_), ASHLAR_OK);
}

TEST_F(CApiTest, FindsTheBlockAroundAnAddress) {
  Open();
  Allocate(1 * kMiB);
  char* second = static_cast<char*>(Allocate(1 * kMiB - 100));
  ashlar_block block{};
  block.struct_size = sizeof(block);
  ASSERT_EQ(ashlar_find_block(allocator_, second + 5000, &block), ASHLAR_OK) << ashlar_last_error();
  EXPECT_EQ(block.address, second);
  EXPECT_EQ(block.size_bytes, 1 * kMiB);
  EXPECT_EQ(block.requested_bytes, 1 * kMiB - 100);
  EXPECT_EQ(block.segment_bytes, 2 * kMiB);
  EXPECT_EQ(static_cast<char*>(block.segment_address), second - kMiB);
  EXPECT_EQ(ashlar_free(allocator_, second), ASHLAR_OK);
  EXPECT_EQ(ashlar_find_block(allocator_, second, &block), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(ashlar_holds(allocator_, second), 1);
  EXPECT_EQ(ashlar_holds(allocator_, second + kMiB), 0);
  EXPECT_EQ(ashlar_find_block(allocator_, &block, &block), ASHLAR_INVALID_ARGUMENT);
}

TEST_F(CApiTest, ABlockOfPagesKnowsItsRun) {
  Open("expandable_segments:True,report_leaks:False");
  Allocate(30 * kMiB);
  ashlar_block block{};
  block.struct_size = sizeof(block);
  void* second = Allocate(10 * kMiB);
  ASSERT_EQ(ashlar_find_block(allocator_, second, &block), ASHLAR_OK);
  EXPECT_EQ(block.segment_bytes, 40 * kMiB);
  EXPECT_EQ(block.address, second);
}

// A caller that was compiled with an older header has a smaller struct, one that knows more a bigger one.
TEST_F(CApiTest, StructsOfOtherVersionsAreFilledAsFarAsBothKnow) {
  Open();
  Allocate(3 * kMiB);
  struct Bigger {
    ashlar_statistics known;
    std::uint64_t unknown;
  } bigger{};
  bigger.known.struct_size = sizeof(bigger);
  bigger.unknown = 42;
  EXPECT_EQ(ashlar_get_statistics(allocator_, &bigger.known), ASHLAR_OK);
  EXPECT_EQ(bigger.known.allocated_bytes, 3 * kMiB);
  EXPECT_EQ(bigger.known.struct_size, sizeof(bigger));
  EXPECT_EQ(bigger.unknown, 42u);
  ashlar_statistics smaller{};
  smaller.struct_size = offsetof(ashlar_statistics, peak_allocated_bytes);
  EXPECT_EQ(ashlar_get_statistics(allocator_, &smaller), ASHLAR_OK);
  EXPECT_EQ(smaller.allocated_bytes, 3 * kMiB);
  EXPECT_EQ(smaller.peak_allocated_bytes, 0u);
  smaller.struct_size = 0;
  EXPECT_EQ(ashlar_get_statistics(allocator_, &smaller), ASHLAR_INVALID_ARGUMENT);
  EXPECT_THAT(ashlar_last_error(), StartsWith("ashlar_statistics: struct_size is not set"));
}

TEST_F(CApiTest, PeaksCanBeReset) {
  Open();
  void* big = Allocate(100 * kMiB);
  Allocate(1 * kMiB);
  ashlar_free(allocator_, big);
  EXPECT_EQ(Statistics().peak_allocated_bytes, 101 * kMiB);
  EXPECT_EQ(ashlar_reset_peaks(allocator_), ASHLAR_OK);
  EXPECT_EQ(Statistics().peak_allocated_bytes, 1 * kMiB);
  Allocate(2 * kMiB);
  EXPECT_EQ(Statistics().peak_allocated_bytes, 3 * kMiB);
}

TEST_F(CApiTest, StatisticsAreNamedAsPyTorchNamesThem) {
  Open();
  Allocate(3 * kMiB);
  std::map<std::string, std::int64_t> values;
  EXPECT_EQ(ashlar_torch_statistics(
                allocator_,
                [](void* context, const char* name, std::int64_t value) {
                  (*static_cast<std::map<std::string, std::int64_t>*>(context))[name] = value;
                },
                &values),
            ASHLAR_OK);
  EXPECT_EQ(values.size(), 123u);
  EXPECT_EQ(values["allocated_bytes.all.current"], static_cast<std::int64_t>(3 * kMiB));
}

struct Calls {
  std::vector<std::uintptr_t> asked;
  int released = 0;
};

TEST_F(CApiTest, APoolTakesWhatItsFilterAccepts) {
  Open();
  ashlar_pool pool{};
  ASSERT_EQ(ashlar_create_pool(allocator_, &pool), ASHLAR_OK);
  Calls calls;
  const auto accepts = [](void* context, ashlar_stream stream) {
    static_cast<Calls*>(context)->asked.push_back(reinterpret_cast<std::uintptr_t>(stream));
    return stream == reinterpret_cast<void*>(5) ? 1 : 0;
  };
  const auto release = [](void* context) { ++static_cast<Calls*>(context)->released; };
  ASSERT_EQ(ashlar_begin_pool(allocator_, pool, ASHLAR_ROUTE_PLAIN, accepts, &calls, release), ASHLAR_OK);
  Calls second;
  EXPECT_EQ(ashlar_begin_pool(allocator_, pool, ASHLAR_ROUTE_PLAIN, accepts, &second, release),
            ASHLAR_FAILED_PRECONDITION);
  EXPECT_EQ(second.released, 1);
  void* in_pool = Allocate(4 * kMiB, 5);
  void* outside = Allocate(4 * kMiB, 6);
  EXPECT_THAT(calls.asked, testing::ElementsAre(5u, 6u));
  EXPECT_EQ(calls.released, 0);
  EXPECT_EQ(ashlar_end_pool(allocator_, pool), ASHLAR_OK);
  EXPECT_EQ(calls.released, 1);
  EXPECT_EQ(ashlar_pool_users(allocator_, pool), 2u);

  ashlar_free(allocator_, in_pool);
  ashlar_free(allocator_, outside);
  void* again = nullptr;
  EXPECT_EQ(ashlar_allocate_in_pool(allocator_, pool, 4 * kMiB, reinterpret_cast<void*>(5), &again), ASHLAR_OK);
  EXPECT_EQ(again, in_pool);
  ashlar_free(allocator_, again);
  EXPECT_EQ(ashlar_empty_pool(allocator_, pool), ASHLAR_FAILED_PRECONDITION);
  EXPECT_EQ(ashlar_release_pool(allocator_, pool), ASHLAR_OK);
  EXPECT_EQ(ashlar_release_pool(allocator_, pool), ASHLAR_OK);
  EXPECT_EQ(ashlar_release_pool(allocator_, pool), ASHLAR_FAILED_PRECONDITION);
  EXPECT_EQ(ashlar_empty_pool(allocator_, pool), ASHLAR_OK);
}

TEST_F(CApiTest, LimitsAreKept) {
  Open();
  EXPECT_EQ(ashlar_set_memory_fraction(allocator_, 0.5), ASHLAR_OK);
  void* memory = nullptr;
  EXPECT_EQ(ashlar_allocate(allocator_, 600 * kMiB, nullptr, &memory), ASHLAR_OUT_OF_MEMORY);
  EXPECT_EQ(ashlar_set_memory_fraction(allocator_, 1.5), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(ashlar_set_memory_fraction(allocator_, 1), ASHLAR_OK);
  Allocate(600 * kMiB);
}

TEST_F(CApiTest, SnapshotsAndRecordingsAreReadable) {
  Open();
  const std::string folder = testing::TempDir();
  const std::string recording = folder + "c_api.ashlar";
  const std::string snapshot = folder + "c_api_state.ashlar";
  ASSERT_EQ(ashlar_start_recording(allocator_, recording.c_str()), ASHLAR_OK) << ashlar_last_error();
  EXPECT_EQ(ashlar_start_recording(allocator_, recording.c_str()), ASHLAR_FAILED_PRECONDITION);
  Allocate(5 * kMiB);
  EXPECT_EQ(ashlar_dump_snapshot(allocator_, snapshot.c_str()), ASHLAR_OK) << ashlar_last_error();
  EXPECT_EQ(ashlar_stop_recording(allocator_), ASHLAR_OK);
  EXPECT_EQ(ashlar_stop_recording(allocator_), ASHLAR_OK);
  for (const std::string& path : {recording, snapshot}) {
    const auto input = ashlar::formats::ReadInput(path);
    EXPECT_TRUE(input.ok()) << input.status();
  }
  EXPECT_EQ(ashlar_dump_snapshot(allocator_, "/nowhere/at/all"), ASHLAR_INVALID_ARGUMENT);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("/nowhere/at/all"));
}

TEST_F(CApiTest, AFullDiskIsNoFullGpu) {
  Open();
  if (std::FILE* full = std::fopen("/dev/full", "w"); full == nullptr) {
    GTEST_SKIP() << "there is no /dev/full here";
  } else {
    std::fclose(full);
  }
  EXPECT_EQ(ashlar_start_recording(allocator_, "/dev/full"), ASHLAR_INTERNAL);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("/dev/full"));
}

// What releases a route's context may use the allocator: it ends the pool's user that came with the route.
TEST_F(CApiTest, AReleaseMayUseTheAllocator) {
  Open();
  struct Route {
    ashlar_allocator* allocator;
    ashlar_pool pool;
    ashlar_status released;
  } route{allocator_, {0, 77}, -1};
  const auto release = [](void* context) {
    Route& ended = *static_cast<Route*>(context);
    ended.released = ashlar_release_pool(ended.allocator, ended.pool);
  };
  ASSERT_EQ(ashlar_begin_pool(allocator_, route.pool, ASHLAR_ROUTE_PLAIN, nullptr, &route, release), ASHLAR_OK);
  EXPECT_EQ(ashlar_end_pool(allocator_, route.pool), ASHLAR_OK);
  EXPECT_EQ(route.released, ASHLAR_OK);
  EXPECT_EQ(ashlar_pool_users(allocator_, route.pool), 0u);
}

TEST_F(CApiTest, TheDefaultPoolIsNotConfigured) {
  Open();
  EXPECT_EQ(ashlar_configure_pool(allocator_, {0, 0}, 0, 1), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(ashlar_retain_pool(allocator_, {0, 0}), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(ashlar_release_pool(allocator_, {0, 0}), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(ashlar_configure_pool(allocator_, {0, 5}, 0, 1), ASHLAR_OK);
}

// PyTorch counts the ids of its pools from {0, 1} on.
TEST_F(CApiTest, CreatedPoolsStayClearOfPyTorchs) {
  Open();
  ashlar_pool pool{};
  ASSERT_EQ(ashlar_create_pool(allocator_, &pool), ASHLAR_OK);
  EXPECT_EQ(pool.first, 0u);
  EXPECT_GT(pool.second, std::uint64_t{1} << 32);
}

TEST(CApiDeathTest, TheEndOfTheProcessEndsRecordings) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::string path = testing::TempDir() + "c_api_exit.ashlar";
  EXPECT_EXIT(
      {
        ashlar_allocator* allocator = nullptr;
        const ashlar_open_options options = Simulated("report_leaks:False");
        ashlar_open(&options, &allocator);
        ashlar_start_recording(allocator, path.c_str());
        for (int i = 0; i < 300; ++i) {
          void* memory = nullptr;
          ashlar_allocate(allocator, 5000, nullptr, &memory);
          ashlar_free(allocator, memory);
        }
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  const auto bytes = ashlar::formats::ReadInput(path);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto snapshot = ashlar::trace::Decode(*bytes);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_EQ(snapshot->device_traces.size(), 1u);
  EXPECT_GE(snapshot->device_traces[0].size(), 600u);
}

TEST(CApi, WrongSettingsOpenNothing) {
  ashlar_allocator* allocator = nullptr;
  ashlar_open_options options = Simulated("max_split_mb:3");
  EXPECT_EQ(ashlar_open(&options, &allocator), ASHLAR_INVALID_ARGUMENT);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("'max_split_mb' is no setting"));
  options = Simulated();
  options.memory = 9;
  EXPECT_EQ(ashlar_open(&options, &allocator), ASHLAR_INVALID_ARGUMENT);
  options = Simulated();
  options.struct_size = 0;
  EXPECT_EQ(ashlar_open(&options, &allocator), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(allocator, nullptr);
  EXPECT_EQ(ashlar_close(nullptr), ASHLAR_OK);
}

TEST(CApi, WithoutAGpuTheProcessAllocatorSaysSo) {
  EXPECT_EQ(ashlar_configure_process("max_split:3"), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(ashlar_configure_process("max_split_size_mb:64"), ASHLAR_OK);
  EXPECT_EQ(ashlar_configure_process(nullptr), ASHLAR_OK);
  ashlar_allocator* allocator = nullptr;
  EXPECT_EQ(ashlar_process_allocator(-1, &allocator), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(ashlar_process_allocator(100000, &allocator), ASHLAR_INVALID_ARGUMENT);
  const ashlar_status status = ashlar_process_allocator(0, &allocator);
  if (status == ASHLAR_OK) GTEST_SKIP() << "there is a GPU here: what is said without one was not looked at";
  EXPECT_EQ(status, ASHLAR_UNAVAILABLE) << ashlar_last_error();
  EXPECT_EQ(allocator, nullptr);
}

}  // namespace
