#include "allocator/device/cuda_events.h"

#include <algorithm>

#include "allocator/base/check.h"
#include "allocator/device/cuda_call.h"

namespace ashlar::device {
namespace {

CudaStream NativeStream(Stream stream) {
  return reinterpret_cast<CudaStream>(static_cast<std::uintptr_t>(Handle(stream)));
}

}  // namespace

bool CudaEvents::TryRecord(Entry& entry, Stream stream) {
  if (idle_.empty()) {
    CudaEvent created = nullptr;
    const int code = cuda_.event_create(&created, kCudaEventDisableTiming);
    if (code != kCudaSuccess) {
      last_error_ = CudaStatus(cuda_, ordinal_, code, "cuEventCreate");
      return false;
    }
    idle_.push_back(created);
  }
  if (const int code = cuda_.event_record(idle_.back(), NativeStream(stream)); code != kCudaSuccess) {
    last_error_ = CudaStatus(cuda_, ordinal_, code, "cuEventRecord");
    return false;
  }
  entry.event = idle_.back();
  idle_.pop_back();
  return true;
}

DeviceEvent CudaEvents::Record(Stream stream) {
  const DeviceEvent event{stream, ++sequence_};
  Entry entry{event.sequence, {}};
  if (!TryRecord(entry, stream)) {
    absl::Status status = SynchronizeStream(stream);
    if (status.ok()) return event;  // not in the queue: done
    last_error_ = std::move(status);
  }
  queues_[Handle(stream)].push_back(entry);
  return event;
}

DeviceEvent CudaEvents::Postpone(Stream stream) {
  const DeviceEvent event{stream, ++sequence_};
  queues_[Handle(stream)].push_back({event.sequence, {}});
  return event;
}

// nullptr when the event is known to be done.
CudaEvents::Entry* CudaEvents::Find(const DeviceEvent& event) {
  const auto it = queues_.find(Handle(event.stream));
  if (it == queues_.end() || event.sequence < it->second.front().sequence) return nullptr;
  Queue& queue = it->second;
  if (queue.front().sequence == event.sequence) [[likely]]
    return &queue.front();
  const auto before = [](const Entry& entry, std::uint64_t sequence) { return entry.sequence < sequence; };
  const auto found = std::lower_bound(queue.begin(), queue.end(), event.sequence, before);
  ASHLAR_CHECK(found != queue.end() && found->sequence == event.sequence);
  return &*found;
}

// A stream's work is in order: what was recorded up to `last_sequence` is done as well.
void CudaEvents::Retire(Stream stream, std::uint64_t last_sequence) {
  const auto it = queues_.find(Handle(stream));
  if (it == queues_.end()) return;
  Queue& queue = it->second;
  while (!queue.empty() && queue.front().sequence <= last_sequence) {
    if (queue.front().event.has_value()) idle_.push_back(*queue.front().event);
    queue.pop_front();
  }
  if (queue.empty()) queues_.erase(it);
}

bool CudaEvents::Query(const DeviceEvent& event) {
  Entry* entry = Find(event);
  if (entry == nullptr) return true;
  if (!entry->event.has_value() && !TryRecord(*entry, event.stream)) return false;
  const int code = cuda_.event_query(*entry->event);
  if (code == kCudaErrorNotReady) return false;
  if (code != kCudaSuccess) {
    last_error_ = CudaStatus(cuda_, ordinal_, code, "cuEventQuery");
    return false;
  }
  Retire(event.stream, event.sequence);
  return true;
}

absl::Status CudaEvents::Synchronize(const DeviceEvent& event) {
  Entry* entry = Find(event);
  if (entry == nullptr) return absl::OkStatus();
  if (!entry->event.has_value() && !TryRecord(*entry, event.stream)) return SynchronizeStream(event.stream);
  absl::Status status = CudaStatus(cuda_, ordinal_, cuda_.event_synchronize(*entry->event), "cuEventSynchronize");
  if (status.ok()) Retire(event.stream, event.sequence);
  return status;
}

absl::Status CudaEvents::SynchronizeStream(Stream stream) {
  int code = cuda_.stream_synchronize(NativeStream(stream));
  absl::Status status = CudaStatus(cuda_, ordinal_, code, "cuStreamSynchronize");
  if (code == kCudaErrorInvalidHandle) {
    // The program destroyed the stream; its work goes on, and is the device's.
    last_error_ = status;
    code = cuda_.context_synchronize();
    status = CudaStatus(cuda_, ordinal_, code, "cuCtxSynchronize");
  }
  if (status.ok()) Retire(stream, sequence_);
  return status;
}

absl::Status CudaEvents::MakeStreamWait(Stream stream, Stream awaited) {
  Entry entry;
  if (!TryRecord(entry, awaited)) return SynchronizeStream(awaited);
  const int code = cuda_.stream_wait_event(NativeStream(stream), *entry.event, kCudaStreamWaitDefault);
  idle_.push_back(*entry.event);  // the wait holds what was recorded, whatever is recorded into the event later
  if (code == kCudaSuccess) return absl::OkStatus();
  last_error_ = CudaStatus(cuda_, ordinal_, code, "cuStreamWaitEvent");
  return SynchronizeStream(awaited);
}

void CudaEvents::DestroyAll() {
  for (auto& [stream, queue] : queues_) {
    for (const Entry& entry : queue) {
      if (entry.event.has_value()) idle_.push_back(*entry.event);
    }
  }
  queues_.clear();
  for (const CudaEvent event : idle_) {
    const int code = cuda_.event_destroy(event);
    if (code != kCudaSuccess) last_error_ = CudaStatus(cuda_, ordinal_, code, "cuEventDestroy");
  }
  idle_.clear();
}

}  // namespace ashlar::device
