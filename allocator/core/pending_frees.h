// Frees that wait for work on other streams: a queue of events for each stream that has any, oldest first. Streams are
// visited by handle, so that the order is the same on every machine. Cost and memory depend on the streams that are
// waited for now, not on all streams ever seen. Thread rule: not thread-safe but for size(); the allocator's exclusive
// section guards it.
//
//   PendingFrees pending;
//   pending.Add(device.RecordEvent(stream), block);           // the block counts its events itself
//   pending.Poll(device, [](policy::Block* block) { ... });   // those whose last event is done
#ifndef ASHLAR_ALLOCATOR_CORE_PENDING_FREES_H_
#define ASHLAR_ALLOCATOR_CORE_PENDING_FREES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "allocator/base/units.h"
#include "allocator/device/device.h"
#include "allocator/device/stream_clock.h"
#include "allocator/policy/block.h"

namespace ashlar::core {

// The streams that use a block besides its own: mostly one or two, which need no memory of their own. Plain value.

using StreamList = absl::InlinedVector<Stream, 2>;

class PendingFrees {
 public:
  void Add(const device::DeviceEvent& event, policy::Block* block) {
    queues_[Handle(event.stream)].push_back({event, block});
    SetSize(size() + 1);
  }

  // Calls `finished(block)` for each block whose last event is done; a stream's queue stops at its first unfinished.
  template <typename Finished>
  void Poll(device::Device& device, Finished finished) {
    ForEachQueue([&](Queue& queue) {
      PollQueue(device, queue, finished);
      return absl::OkStatus();
    }).IgnoreError();
  }

  // The same where only the streams with news may have finished more since the last time. Returns how many others there
  // are: their first events would have been asked in vain.
  template <typename Finished>
  std::size_t PollNews(device::Device& device, device::StreamNews news, Finished finished) {
    if (news.is_of_all) {
      Poll(device, finished);
      return 0;
    }
    std::sort(news.streams.begin(), news.streams.end());
    news.streams.erase(std::unique(news.streams.begin(), news.streams.end()), news.streams.end());
    std::size_t others = queues_.size();
    for (const std::uint64_t stream : news.streams) {
      const auto it = queues_.find(stream);
      if (it == queues_.end()) continue;
      --others;
      PollQueue(device, it->second, finished);
      if (it->second.empty()) queues_.erase(it);
    }
    return others;
  }

  // The same for all events, waiting for each. A stream whose event cannot be waited for keeps its queue; the first
  // such error is returned.
  template <typename Finished>
  absl::Status Synchronize(device::Device& device, Finished finished) {
    return ForEachQueue([&](Queue& queue) { return SynchronizeFront(device, queue, queue.size(), finished); });
  }

  // The same for the events of one block alone, and what is done with them: what their streams were given before.
  template <typename Finished>
  absl::Status SynchronizeBlock(device::Device& device, const policy::Block* block, Finished finished) {
    absl::Status first_error;
    return ForEachQueue([&](Queue& queue) {
      if (!first_error.ok()) return absl::OkStatus();
      std::size_t count = queue.size();
      while (count > 0 && queue[count - 1].block != block) --count;
      if (count > 0) first_error = device.SynchronizeEvent(queue[count - 1].event);
      for (; first_error.ok() && count > 0; --count) PopFront(queue, finished);
      return first_error;
    });
  }

  // The same for the event that was recorded first. Not to be called when there is none.
  template <typename Finished>
  absl::Status SynchronizeOldest(device::Device& device, Finished finished) {
    const auto oldest = std::min_element(queues_.begin(), queues_.end(), [](const auto& a, const auto& b) {
      return a.second.front().event.sequence < b.second.front().event.sequence;
    });
    absl::Status status = SynchronizeFront(device, oldest->second, 1, finished);
    if (oldest->second.empty()) queues_.erase(oldest);
    return status;
  }

  // Of events, by any thread.
  std::size_t size() const { return size_.load(std::memory_order_acquire); }
  std::size_t stream_count() const { return queues_.size(); }     // of those that are waited for
  std::uint64_t queues_polled() const { return queues_polled_; }  // so far

 private:
  struct Item {
    device::DeviceEvent event;
    policy::Block* block;
  };

  using Queue = std::deque<Item>;

  template <typename Finished>
  void PollQueue(device::Device& device, Queue& queue, Finished& finished) {
    ++queues_polled_;
    while (!queue.empty() && device.QueryEvent(queue.front().event)) PopFront(queue, finished);
  }

  void SetSize(std::size_t size) { size_.store(size, std::memory_order_release); }

  // What `visit` leaves empty goes. The first error that it returns.
  template <typename Visit>
  absl::Status ForEachQueue(Visit visit) {
    absl::Status first_error;
    for (auto it = queues_.begin(); it != queues_.end();) {
      first_error.Update(visit(it->second));
      it = it->second.empty() ? queues_.erase(it) : std::next(it);
    }
    return first_error;
  }

  template <typename Finished>
  absl::Status SynchronizeFront(device::Device& device, Queue& queue, std::size_t count, Finished& finished) {
    for (; count > 0; --count) {
      if (absl::Status status = device.SynchronizeEvent(queue.front().event); !status.ok()) return status;
      PopFront(queue, finished);
    }
    return absl::OkStatus();
  }

  template <typename Finished>
  void PopFront(Queue& queue, Finished& finished) {
    policy::Block* block = queue.front().block;
    queue.pop_front();
    SetSize(size() - 1);
    if (--block->pending_events == 0) finished(block);
  }

  std::map<std::uint64_t, Queue> queues_;  // by stream handle; none is empty
  std::atomic<std::size_t> size_{0};
  std::uint64_t queues_polled_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_PENDING_FREES_H_
