// Frees that wait for work on other streams: a queue of events for each stream, oldest first. Streams are visited by
// handle, so that the order is the same on every machine.
#ifndef ASHLAR_ALLOCATOR_CORE_PENDING_FREES_H_
#define ASHLAR_ALLOCATOR_CORE_PENDING_FREES_H_

#include <cstddef>
#include <deque>
#include <iterator>
#include <map>

#include "absl/status/status.h"
#include "allocator/base/units.h"
#include "allocator/device/device.h"
#include "allocator/policy/block.h"

namespace ashlar::core {

class PendingFrees {
 public:
  void Add(const device::DeviceEvent& event, policy::Block* block) {
    queues_[Handle(event.stream)].push_back({event, block});
    ++size_;
  }

  // Calls `finished(block)` for each block whose last event is done; a stream's queue stops at its first unfinished.
  template <typename Finished>
  void Poll(device::Device& device, Finished finished) {
    for (auto& [stream, queue] : queues_) {
      while (!queue.empty() && device.QueryEvent(queue.front().event)) PopFront(queue, finished);
    }
  }

  // The same for all events, waiting for each. A stream whose event cannot be waited for keeps its queue; the first
  // such error is returned.
  template <typename Finished>
  absl::Status Synchronize(device::Device& device, Finished finished) {
    absl::Status first_error;
    for (auto it = queues_.begin(); it != queues_.end();) {
      const absl::Status status = SynchronizeQueue(device, it->second, finished);
      first_error.Update(status);
      it = status.ok() ? queues_.erase(it) : std::next(it);
    }
    return first_error;
  }

  // The same for the events of one block alone, and what is done with them: what their streams were given before.
  template <typename Finished>
  absl::Status SynchronizeBlock(device::Device& device, const policy::Block* block, Finished finished) {
    for (auto& [stream, queue] : queues_) {
      std::size_t count = queue.size();
      while (count > 0 && queue[count - 1].block != block) --count;
      if (count == 0) continue;
      if (absl::Status status = device.SynchronizeEvent(queue[count - 1].event); !status.ok()) return status;
      for (; count > 0; --count) PopFront(queue, finished);
    }
    return absl::OkStatus();
  }

  // The same for the event that was recorded first. Not to be called when there is none.
  template <typename Finished>
  absl::Status SynchronizeOldest(device::Device& device, Finished finished) {
    std::deque<Item>* oldest = nullptr;
    for (auto& [stream, queue] : queues_) {
      if (queue.empty()) continue;
      if (oldest == nullptr || queue.front().event.sequence < oldest->front().event.sequence) oldest = &queue;
    }
    if (absl::Status status = device.SynchronizeEvent(oldest->front().event); !status.ok()) return status;
    PopFront(*oldest, finished);
    return absl::OkStatus();
  }

  std::size_t size() const { return size_; }

 private:
  struct Item {
    device::DeviceEvent event;
    policy::Block* block;
  };

  template <typename Finished>
  absl::Status SynchronizeQueue(device::Device& device, std::deque<Item>& queue, Finished& finished) {
    while (!queue.empty()) {
      if (absl::Status status = device.SynchronizeEvent(queue.front().event); !status.ok()) return status;
      PopFront(queue, finished);
    }
    return absl::OkStatus();
  }

  template <typename Finished>
  void PopFront(std::deque<Item>& queue, Finished& finished) {
    policy::Block* block = queue.front().block;
    queue.pop_front();
    --size_;
    if (--block->pending_events == 0) finished(block);
  }

  std::map<std::uint64_t, std::deque<Item>> queues_;  // by stream handle
  std::size_t size_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_PENDING_FREES_H_
