// The CUDA events of one device: created once, pooled, and given back as soon as one is known to be done. The caller
// has made the device's context current.
//
// An event that cannot be created or recorded is made up for, never lost: its stream is synchronised, and it is done;
// or, where that fails too, it is recorded at the next query or synchronise: later than asked, never earlier. Thread
// rule: not thread-safe; the device's caller serialises calls.
#ifndef ASHLAR_ALLOCATOR_DEVICE_CUDA_EVENTS_H_
#define ASHLAR_ALLOCATOR_DEVICE_CUDA_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "allocator/device/cuda_driver.h"
#include "allocator/device/device.h"

namespace ashlar::device {

class CudaEvents {
 public:
  // `last_error` receives the errors that are made up for.
  CudaEvents(const CudaDriver& cuda, int ordinal, absl::Status* last_error)
      : cuda_(cuda), ordinal_(ordinal), last_error_(*last_error) {}

  DeviceEvent Record(Stream stream);
  // The same without a call: recorded at the next query or synchronise.
  DeviceEvent Postpone(Stream stream);
  // An error is no proof: false.
  bool Query(const DeviceEvent& event);
  absl::Status Synchronize(const DeviceEvent& event);
  absl::Status SynchronizeStream(Stream stream);
  // A wait that cannot be given to the stream is made up for: the caller waits instead.
  absl::Status MakeStreamWait(Stream stream, Stream awaited);

  // Destroys all events, done or not. What was recorded and not yet known to be done is done for Query.
  void DestroyAll();

 private:
  struct Entry {
    std::uint64_t sequence = 0;
    std::optional<CudaEvent> event;  // nothing = not recorded yet
  };
  using Queue = std::deque<Entry>;  // oldest first

  Entry* Find(const DeviceEvent& event);
  bool TryRecord(Entry& entry, Stream stream);
  void Retire(Stream stream, std::uint64_t last_sequence);

  const CudaDriver& cuda_;
  int ordinal_;
  absl::Status& last_error_;
  absl::flat_hash_map<std::uint64_t, Queue> queues_;  // by stream handle: recorded, not known to be done
  std::vector<CudaEvent> idle_;
  std::uint64_t sequence_ = 0;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_CUDA_EVENTS_H_
