// Keeps which work on which stream is sure to come before which other: a simulated device that keeps vector clocks
// beside what it is asked, and judges each range that is handed to a stream. It knows nothing of the allocator's blocks
// or events.
//
//   clock of a stream   for every stream, how much of that one's work comes before what this one is given next
//   the host's clock    what is known to be done: it comes before everything that is given to any stream
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_STREAM_ORDER_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_STREAM_ORDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"

namespace ashlar::core {

class OrderedDevice : public device::Device {
 public:
  explicit OrderedDevice(const device::SimDeviceOptions& options) : device_(options) {}

  // `stream` begins to work on the range.
  void Hand(std::uint64_t address, std::uint64_t size_bytes, Stream stream) {
    Join(clocks_[stream], host_);
    for (auto it = uses_.begin(); it != uses_.end();) {
      if (it->first >= address + size_bytes || it->first + it->second.size_bytes <= address) {
        ++it;
        continue;
      }
      for (const auto& [user, time] : it->second.times) {
        if (clocks_[stream][user] >= time) continue;
        disorder_ = absl::StrCat("stream ", Handle(stream), " was handed ", address, ", which stream ", Handle(user),
                                 " may still use");
      }
      it = uses_.erase(it);
    }
    uses_[address].size_bytes = size_bytes;
    Work(address, stream);
  }
  // `stream` works on a range that was handed out.
  void Work(std::uint64_t address, Stream stream) {
    Join(clocks_[stream], host_);
    uses_.at(address).times[stream] = ++clocks_[stream][stream];
  }
  void CompleteAllWork() { device_.CompleteAllWork(); }

  const std::string& disorder() const { return disorder_; }
  const device::SimDevice& simulated() const { return device_; }

  absl::StatusOr<std::uint64_t> AllocateSegment(std::uint64_t size_bytes) override {
    return device_.AllocateSegment(size_bytes);
  }
  absl::Status FreeSegment(std::uint64_t address) override {
    for (const auto& [stream, clock] : clocks_) Join(host_, clock);  // as cudaFree, it waits for the device
    return device_.FreeSegment(address);
  }
  absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes) override { return device_.Reserve(size_bytes); }
  absl::Status ReleaseReservation(std::uint64_t address) override { return device_.ReleaseReservation(address); }
  absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override {
    return device_.Map(address, size_bytes, page_bytes);
  }
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override {
    for (const auto& [begin, use] : uses_) {
      if (begin >= address + size_bytes || begin + use.size_bytes <= address) continue;
      for (const auto& [user, time] : use.times) {
        if (host_[user] < time) disorder_ = absl::StrCat("a page that stream ", Handle(user), " may use was unmapped");
      }
    }
    return device_.Unmap(address, size_bytes, page_bytes);
  }
  device::MemoryInfo GetMemoryInfo() override { return device_.GetMemoryInfo(); }
  device::DeviceEvent RecordEvent(Stream stream) override {
    const device::DeviceEvent event = device_.RecordEvent(stream);
    Join(clocks_[stream], host_);
    events_[event.sequence] = clocks_[stream];
    return event;
  }
  bool QueryEvent(const device::DeviceEvent& event) override {
    const bool is_done = device_.QueryEvent(event);
    if (is_done) Join(host_, events_.at(event.sequence));
    return is_done;
  }
  absl::Status SynchronizeEvent(const device::DeviceEvent& event) override {
    Join(host_, events_.at(event.sequence));
    return device_.SynchronizeEvent(event);
  }
  absl::Status SynchronizeStream(Stream stream) override {
    Join(host_, clocks_[stream]);
    return device_.SynchronizeStream(stream);
  }
  absl::Status MakeStreamWait(Stream stream, Stream awaited) override {
    const Clock theirs = clocks_[awaited];
    Join(clocks_[stream], theirs);
    return device_.MakeStreamWait(stream, awaited);
  }
  void SetCapturing(bool is_capturing) override { device_.SetCapturing(is_capturing); }

 private:
  using Clock = std::map<Stream, std::uint64_t>;
  struct Use {
    std::uint64_t size_bytes = 0;
    Clock times;
  };

  static void Join(Clock& clock, const Clock& other) {
    for (const auto& [stream, time] : other) clock[stream] = std::max(clock[stream], time);
  }

  device::SimDevice device_;
  Clock host_;
  std::map<Stream, Clock> clocks_;
  std::map<std::uint64_t, Clock> events_;  // by sequence
  std::map<std::uint64_t, Use> uses_;      // by address
  std::string disorder_;
};

// A random program whose streams work on their blocks until the moment they are freed.
inline void RunInOrder(OrderedDevice& device, CachingAllocator& allocator, std::uint64_t seed, int steps) {
  struct Held {
    Block* block = nullptr;
    std::vector<Stream> users;
  };
  Rng rng(seed);
  std::vector<Held> held;
  for (int step = 0; step < steps && device.disorder().empty(); ++step) {
    const std::uint64_t dice = rng.Below(100);
    if (dice < 45) {
      const Stream stream{rng.Below(4)};
      const std::uint64_t bytes = rng.Below(3) == 0 ? rng.Between(1, kMiB) : rng.Between(kMiB, 16 * kMiB);
      const absl::StatusOr<Block*> block = allocator.Allocate(bytes, stream);
      if (!block.ok()) continue;
      device.Hand((*block)->address, (*block)->size_bytes, stream);
      held.push_back({*block, {stream}});
    } else if (dice < 60 && !held.empty()) {
      Held& user = held[rng.Below(held.size())];
      user.users.push_back(Stream{rng.Below(4)});
      allocator.RecordStream(user.block, user.users.back());
    } else if (dice < 97 && !held.empty()) {
      std::swap(held[rng.Below(held.size())], held.back());
      for (const Stream stream : held.back().users) device.Work(held.back().block->address, stream);
      allocator.Free(held.back().block);
      held.pop_back();
    } else {
      device.CompleteAllWork();
    }
  }
  EXPECT_EQ(device.disorder(), "");
}

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_STREAM_ORDER_H_
