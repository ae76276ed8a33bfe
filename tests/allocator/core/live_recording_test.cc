// Programs on eight threads, recorded as they run, from their start or from the middle.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/recorder.h"
#include "allocator/device/host_device.h"
#include "allocator/trace/codec.h"
#include "tests/allocator/core/locked_device.h"
#include "tests/allocator/core/recorded_file.h"
#include "tests/allocator/core/threads_worker.h"

namespace ashlar::core {
namespace {

constexpr int kThreads = 8;

struct Live {
  const char* name;
  const char* conf;
  std::uint64_t capacity_bytes;
  std::uint64_t warm_up_steps = 0;  // before the recorder comes
  policy::Compat compat = policy::Compat::kTorch210;
};
std::ostream& operator<<(std::ostream& out, const Live& live) { return out << live.name; }

class LiveRecordingTest : public testing::TestWithParam<Live> {};

TEST_P(LiveRecordingTest, ReplaysToTheSameDecisions) {
  const Live& live = GetParam();
  device::SimDeviceOptions device_options;
  device_options.capacity_bytes = live.capacity_bytes;
  LockedDevice device(device_options);
  CachingAllocator allocator(&device, Options(live.conf, live.compat));
  Clock clock;
  Mailbox mail;
  std::vector<Worker> workers;
  for (int i = 0; i < kThreads; ++i) workers.emplace_back(i, i + 1, allocator, device, clock, mail);
  std::atomic<int> warm{0};
  std::atomic<bool> is_recorded{live.warm_up_steps == 0};
  const std::string path = TempFile(live.name);
  std::unique_ptr<Recorder> recorder;
  const auto begin = [&] { recorder = *Recorder::ToFile(&allocator, path, {.chunk_bytes = 4096}); };
  if (is_recorded) begin();
  std::vector<std::thread> threads;
  for (Worker& worker : workers) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < live.warm_up_steps; ++i) worker.RunSteps(1);
      ++warm;
      while (!is_recorded) worker.RunSteps(1);
      worker.Run(700);
    });
  }
  while (warm < kThreads) std::this_thread::yield();
  if (!is_recorded) {
    begin();
    is_recorded = true;
  }
  for (std::thread& thread : threads) thread.join();
  workers.front().FreeMail();
  device.CompleteAllWork();
  allocator.PollEvents();
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());

  const absl::StatusOr<trace::Snapshot> recording = trace::Decode(BytesOf(path));
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_TRUE(recording->notes.empty()) << recording->notes.front().message;
  EXPECT_TRUE(recording->recording->is_complete);
  ASSERT_EQ(recording->device_traces.size(), 1u);
  EXPECT_EQ(recording->device_traces[0].size(), recorder->event_count());
  std::uint64_t ooms = 0;
  for (const trace::Event& event : recording->device_traces[0]) ooms += event.action == trace::Action::kOom ? 1 : 0;
  EXPECT_TRUE(ooms > 0 || live.capacity_bytes > kGiB);
  ExpectReplaysExactly(*recording);
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    Settings, LiveRecordingTest,
    testing::Values(Live{"roomy", "", 4 * kGiB}, Live{"tight", "", 120 * kMiB},
                    Live{"max_split", "max_split_size_mb:21,roundup_power2_divisions:4", 160 * kMiB},
                    Live{"expandable", "expandable_segments:True", 120 * kMiB},
                    Live{"pages", "policy:ashlar", 120 * kMiB},
                    Live{"latest", "", 140 * kMiB, 0, policy::Compat::kTorchLatest},
                    Live{"from_the_middle", "", 140 * kMiB, 300},
                    Live{"expandable_from_the_middle", "expandable_segments:True", 140 * kMiB, 300}),
    [](const auto& tested) { return tested.param.name; });

// Over host memory the addresses are the kernel's: the recording says which.
TEST(HostRecordingTest, ARunOverHostMemoryReplays) {
  device::HostDevice device({.capacity_bytes = 64 * kMiB});
  CachingAllocator allocator(&device, Options(""));
  const std::string path = TempFile("host");
  std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&allocator, path);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&allocator, i] {
      Rng rng(i);
      std::vector<std::uint64_t> addresses;
      for (int step = 0; step < 500; ++step) {
        const absl::StatusOr<std::uint64_t> address = allocator.AllocateAddress(rng.Between(1, 5 * kMiB), Stream{i});
        if (address.ok()) {
          *reinterpret_cast<std::uint64_t*>(*address) = i;
          addresses.push_back(*address);
        }
        while (addresses.size() > 6 || (!address.ok() && !addresses.empty())) {
          EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(addresses.back()), i);
          EXPECT_TRUE(allocator.FreeAddress(addresses.back()));
          addresses.pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectReplaysExactly(*read);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace ashlar::core
