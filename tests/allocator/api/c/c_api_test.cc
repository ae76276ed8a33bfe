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
#include <utility>
#include <vector>

#include "allocator/trace/codec.h"
#include "analyzer/formats/input_file.h"
#include "ashlar.h"
#include "tests/allocator/api/c/c_api_fixture.h"

namespace {

using ashlar::tests::CApiTest;
using ashlar::tests::kMiB;
using ashlar::tests::Simulated;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::StrEq;

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

TEST_F(CApiTest, TaggedPoolsSleepAndWake) {
  ashlar_open_options options = Simulated("expandable_segments:True,report_leaks:False", 64 * kMiB);
  options.memory = ASHLAR_MEMORY_HOST;
  ASSERT_EQ(ashlar_open(&options, &allocator_), ASHLAR_OK) << ashlar_last_error();
  const ashlar_pool pool = {0, 5};
  ASSERT_EQ(ashlar_tag_pool(allocator_, pool, "rollout"), ASHLAR_OK) << ashlar_last_error();
  EXPECT_EQ(ashlar_tag_pool(allocator_, {0, 0}, "rollout"), ASHLAR_INVALID_ARGUMENT);
  void* memory = nullptr;
  ASSERT_EQ(ashlar_allocate_in_pool(allocator_, pool, 3 * kMiB, nullptr, &memory), ASHLAR_OK);
  std::memset(memory, 7, 3 * kMiB);

  const char* const tags[] = {"rollout"};
  ashlar_sleep_options wanted{};
  EXPECT_EQ(ashlar_sleep(allocator_, &wanted, nullptr), ASHLAR_INVALID_ARGUMENT);
  EXPECT_THAT(ashlar_last_error(), StartsWith("ashlar_sleep_options: struct_size is not set"));
  wanted.struct_size = sizeof(wanted);
  wanted.tags = tags;
  wanted.tag_count = 1;
  wanted.host_limit_bytes = kMiB;
  wanted.folder = "/tmp";
  ashlar_sleep_report report{};
  report.struct_size = sizeof(report);
  ASSERT_EQ(ashlar_sleep(allocator_, &wanted, &report), ASHLAR_OK) << ashlar_last_error();
  EXPECT_EQ(report.returned_bytes, 20 * kMiB);
  EXPECT_EQ(report.kept_host_bytes, kMiB);
  EXPECT_EQ(report.kept_file_bytes, 2 * kMiB);
  EXPECT_EQ(Statistics().reserved_bytes, 0u);
  EXPECT_EQ(ashlar_is_asleep(allocator_, memory), 1);
  void* more = nullptr;
  EXPECT_EQ(ashlar_allocate_in_pool(allocator_, pool, 512, nullptr, &more), ASHLAR_FAILED_PRECONDITION);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("is asleep: call Wake first"));
  EXPECT_EQ(ashlar_record_stream(allocator_, memory, reinterpret_cast<void*>(5)), ASHLAR_FAILED_PRECONDITION);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("is asleep: call ashlar_wake first"));

  ASSERT_EQ(ashlar_wake(allocator_, nullptr), ASHLAR_OK) << ashlar_last_error();
  EXPECT_EQ(ashlar_is_asleep(allocator_, memory), 0);
  const std::string bytes(static_cast<const char*>(memory), 3 * kMiB);
  EXPECT_EQ(bytes, std::string(3 * kMiB, 7));
}

TEST_F(CApiTest, RegisteredRangesStay) {
  ashlar_open_options options = Simulated("report_leaks:False", 64 * kMiB);
  options.memory = ASHLAR_MEMORY_HOST;
  ASSERT_EQ(ashlar_open(&options, &allocator_), ASHLAR_OK) << ashlar_last_error();
  void* memory = nullptr;
  ASSERT_EQ(ashlar_allocate(allocator_, 30 * kMiB, nullptr, &memory), ASHLAR_OK);
  ASSERT_EQ(ashlar_register_range(allocator_, memory, kMiB), ASHLAR_OK) << ashlar_last_error();
  ashlar_free(allocator_, memory);
  ASSERT_EQ(ashlar_empty_cache(allocator_), ASHLAR_OK);
  EXPECT_EQ(Statistics().reserved_bytes, 30 * kMiB);
  ASSERT_EQ(ashlar_unregister_range(allocator_, memory), ASHLAR_OK) << ashlar_last_error();
  EXPECT_EQ(ashlar_unregister_range(allocator_, memory), ASHLAR_INVALID_ARGUMENT);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("no registered range begins at 0x"));
  ASSERT_EQ(ashlar_empty_cache(allocator_), ASHLAR_OK);
  EXPECT_EQ(Statistics().reserved_bytes, 0u);
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

// --- what PyTorch's class for allocators is made of ---

using Seen = std::vector<ashlar_event>;
void Keep(void* seen, const ashlar_event* event) { static_cast<Seen*>(seen)->push_back(*event); }

std::vector<int> KindsOf(const Seen& seen) {
  std::vector<int> kinds;
  for (const ashlar_event& event : seen) kinds.push_back(event.kind);
  return kinds;
}

TEST_F(CApiTest, AnObserverIsToldOfEveryEvent) {
  Open();
  Seen seen;
  ASSERT_EQ(ashlar_observe(allocator_, Keep, &seen), ASHLAR_OK);
  void* block = Allocate(3 * kMiB + 100, 7);
  ashlar_record_stream(allocator_, block, reinterpret_cast<void*>(8));
  ashlar_free(allocator_, block);
  EXPECT_THAT(KindsOf(seen), ::testing::ElementsAre(ASHLAR_EVENT_SEGMENT_ALLOC, ASHLAR_EVENT_ALLOC,
                                                    ASHLAR_EVENT_FREE_REQUESTED));  // stream 8 is not done
  EXPECT_EQ(seen[1].size_bytes, 3 * kMiB + 100);
  EXPECT_EQ(seen[1].address, reinterpret_cast<std::uintptr_t>(block));
  EXPECT_EQ(seen[1].stream, reinterpret_cast<void*>(7));
  void* none = nullptr;
  ASSERT_EQ(ashlar_allocate(allocator_, 4096 * kMiB, nullptr, &none), ASHLAR_OUT_OF_MEMORY);
  EXPECT_EQ(seen.back().kind, ASHLAR_EVENT_OUT_OF_MEMORY);
  EXPECT_EQ(seen.back().size_bytes, 4096 * kMiB);
  ASSERT_EQ(ashlar_observe(allocator_, nullptr, nullptr), ASHLAR_OK);
  const std::size_t before = seen.size();
  ashlar_free(allocator_, Allocate(kMiB));
  EXPECT_EQ(seen.size(), before);
}

// What a thread's own cache would serve is told too, and a recording beside it goes on.
TEST_F(CApiTest, AnObserverAndARingSeeTheSame) {
  Open();
  Seen seen;
  ASSERT_EQ(ashlar_start_ring(allocator_, kMiB), ASHLAR_OK);
  ASSERT_EQ(ashlar_observe(allocator_, Keep, &seen), ASHLAR_OK);
  for (int i = 0; i < 100; ++i) ashlar_free(allocator_, Allocate(4096));
  EXPECT_EQ(seen.size(), 301u);
  const std::string file = testing::TempDir() + "/observed.ashlar";
  ASSERT_EQ(ashlar_write_ring(allocator_, file.c_str()), ASHLAR_OK) << ashlar_last_error();
  const auto snapshot = ashlar::formats::ReadInput(file);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  std::remove(file.c_str());
}

struct Tile {
  std::uint64_t segment_bytes = 0;
  std::vector<std::uint64_t> states;
};

TEST_F(CApiTest, SegmentsAreShownWithTheirBlocks) {
  Open();
  Allocate(4 * kMiB);
  void* second = Allocate(4 * kMiB);
  Allocate(4 * kMiB);
  ashlar_free(allocator_, second);
  Tile tile;
  const auto visit = [](void* context, const ashlar_segment* segment) {
    auto& out = *static_cast<Tile*>(context);
    out.segment_bytes += segment->size_bytes;
    const char* at = static_cast<const char*>(segment->address);
    for (std::size_t i = 0; i < segment->block_count; ++i) {
      EXPECT_EQ(segment->blocks[i].address, at);
      at += segment->blocks[i].size_bytes;
      out.states.push_back(static_cast<std::uint64_t>(segment->blocks[i].state));
    }
    EXPECT_EQ(at, static_cast<const char*>(segment->address) + segment->size_bytes);
  };
  ASSERT_EQ(ashlar_visit_segments(allocator_, visit, &tile), ASHLAR_OK);
  EXPECT_EQ(tile.segment_bytes, 20 * kMiB);
  EXPECT_THAT(tile.states,
              ::testing::ElementsAre(ASHLAR_BLOCK_LIVE, ASHLAR_BLOCK_FREE, ASHLAR_BLOCK_LIVE, ASHLAR_BLOCK_FREE));
}

// A pool goes back to where its blocks lay before.
TEST_F(CApiTest, BlocksComeBackWhereTheyWere) {
  Open();
  void* first = Allocate(4 * kMiB);
  void* second = Allocate(5 * kMiB);
  EXPECT_EQ(ashlar_may_hold(allocator_, second), 1);
  EXPECT_EQ(ashlar_allocate_at(allocator_, second, 5 * kMiB, 5 * kMiB), ASHLAR_INVALID_ARGUMENT);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("are not free in a segment of this allocator"));
  ashlar_free(allocator_, first);
  ashlar_free(allocator_, second);
  ASSERT_EQ(ashlar_allocate_at(allocator_, second, 5 * kMiB, 5 * kMiB - 100), ASHLAR_OK) << ashlar_last_error();
  ashlar_block block{};
  block.struct_size = sizeof(block);
  ASSERT_EQ(ashlar_find_block(allocator_, second, &block), ASHLAR_OK);
  EXPECT_EQ(block.size_bytes, 5 * kMiB);
  EXPECT_EQ(block.requested_bytes, 5 * kMiB - 100);
  EXPECT_EQ(Allocate(4 * kMiB), first);
  EXPECT_EQ(ashlar_free(allocator_, second), ASHLAR_OK);
  EXPECT_EQ(Statistics().device_allocations, 1u);
}

TEST_F(CApiTest, ARouteBecomesACapture) {
  Open();
  ashlar_pool pool{};
  ashlar_pool other{};
  ASSERT_EQ(ashlar_create_pool(allocator_, &pool), ASHLAR_OK);
  ASSERT_EQ(ashlar_create_pool(allocator_, &other), ASHLAR_OK);
  EXPECT_EQ(ashlar_begin_capture(allocator_, pool), ASHLAR_FAILED_PRECONDITION);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("has no plain route"));
  ASSERT_EQ(ashlar_begin_pool(allocator_, pool, ASHLAR_ROUTE_PLAIN, nullptr, nullptr, nullptr), ASHLAR_OK);
  ASSERT_EQ(ashlar_begin_pool(allocator_, other, ASHLAR_ROUTE_PLAIN, nullptr, nullptr, nullptr), ASHLAR_OK);
  EXPECT_EQ(ashlar_pool_users(allocator_, pool), 2u);
  ASSERT_EQ(ashlar_begin_capture(allocator_, pool), ASHLAR_OK);
  EXPECT_EQ(ashlar_pool_users(allocator_, pool), 2u);
  EXPECT_EQ(ashlar_begin_capture(allocator_, pool), ASHLAR_FAILED_PRECONDITION);
  EXPECT_EQ(ashlar_end_pool(allocator_, other), ASHLAR_OK);
  EXPECT_EQ(ashlar_empty_cache(allocator_), ASHLAR_FAILED_PRECONDITION);  // nothing may wait
  ASSERT_EQ(ashlar_end_capture(allocator_, pool), ASHLAR_OK);
  EXPECT_EQ(ashlar_empty_cache(allocator_), ASHLAR_OK);
  EXPECT_EQ(ashlar_end_capture(allocator_, pool), ASHLAR_FAILED_PRECONDITION);
  ASSERT_EQ(ashlar_tag_pool(allocator_, pool, "cache"), ASHLAR_OK);
  EXPECT_EQ(ashlar_begin_capture(allocator_, pool), ASHLAR_INVALID_ARGUMENT);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("a graph is captured in a pool without a tag"));
  EXPECT_EQ(ashlar_end_pool(allocator_, pool), ASHLAR_OK);
}

TEST_F(CApiTest, PoolsHaveFiguresOfTheirOwn) {
  Open();
  ashlar_pool pool{};
  ASSERT_EQ(ashlar_create_pool(allocator_, &pool), ASHLAR_OK);
  void* memory = nullptr;
  ASSERT_EQ(ashlar_allocate_in_pool(allocator_, pool, 30 * kMiB, nullptr, &memory), ASHLAR_OK);
  Allocate(30 * kMiB);
  ashlar_free(allocator_, memory);
  ashlar_release_pool(allocator_, pool);
  ASSERT_EQ(ashlar_empty_pool(allocator_, pool), ASHLAR_OK);
  std::vector<ashlar_pool_statistics> seen;
  const auto visit = [](void* context, const ashlar_pool_statistics* its) {
    static_cast<std::vector<ashlar_pool_statistics>*>(context)->push_back(*its);
  };
  ASSERT_EQ(ashlar_visit_pools(allocator_, visit, &seen), ASHLAR_OK);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].pool.second, pool.second);
  EXPECT_EQ(seen[0].reserved_bytes[0], 0u);
  EXPECT_EQ(seen[0].peak_reserved_bytes[0], 30 * kMiB);
  EXPECT_EQ(seen[0].obtained_bytes[2], 30 * kMiB);
  EXPECT_EQ(seen[0].returned_bytes[0], 30 * kMiB);
}

TEST_F(CApiTest, WhoCanGiveMemoryBackIsAskedBeforeTheDevice) {
  Open();
  struct Held {
    ashlar_allocator* allocator;
    void* memory;
  } held = {allocator_, Allocate(30 * kMiB)};
  const auto give = [](void* context) {
    auto& its = *static_cast<Held*>(context);
    const bool has_freed = its.memory != nullptr;
    ashlar_free(its.allocator, std::exchange(its.memory, nullptr));
    return has_freed ? 1 : 0;
  };
  ASSERT_EQ(ashlar_add_free_memory_callback(allocator_, give, &held), ASHLAR_OK);
  void* const before = held.memory;
  EXPECT_EQ(Allocate(30 * kMiB), before);
  EXPECT_EQ(Statistics().device_allocations, 1u);
  Allocate(30 * kMiB);
  EXPECT_EQ(Statistics().device_allocations, 2u);
}

}  // namespace
