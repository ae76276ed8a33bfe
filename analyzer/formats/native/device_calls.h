// Calls on device memory as a snapshot: each allocation is a segment of its own, with one block in it, from the call to
// its free. What is alive at the end is the snapshot's state.
//
//   LoggedCalls calls;
//   calls.Allocate({.time_us = 5, .device = 0, .stack = 3}, 0x7f0000000000, kMiB, Stream{});
//   calls.Free({.time_us = 9, .stack = 4}, 0x7f0000000000);
//   calls.Finish(snapshot);
//
// Virtual memory counts while it is mapped, where it is mapped first: what is mapped twice is there once. Sizes are
// bytes. No order of calls is an error: what does not fit together is counted and named in the snapshot's notes.
#ifndef ASHLAR_ANALYZER_FORMATS_NATIVE_DEVICE_CALLS_H_
#define ASHLAR_ANALYZER_FORMATS_NATIVE_DEVICE_CALLS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/trace_tail.h"

namespace ashlar::formats {

struct DeviceCall {
  std::int64_t time_us = trace::kNoTime;
  int device = 0;
  trace::StackId stack = trace::kNoStack;
};

class LoggedCalls {
 public:
  static constexpr int kMostDevices = 1024;
  static constexpr int kHost = -1;

  // How many events of each device are held, the last; 0: all.
  explicit LoggedCalls(std::uint64_t max_events = 0) : max_events_(max_events) {}

  void Allocate(const DeviceCall& call, std::uint64_t address, std::uint64_t bytes, Stream stream);
  void Free(const DeviceCall& call, std::uint64_t address);
  // Found no memory.
  void Fail(const DeviceCall& call, std::uint64_t bytes, std::uint64_t free_bytes, Stream stream);

  void Create(const DeviceCall& call, std::uint64_t handle, std::uint64_t bytes);
  struct Mapping {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t handle = 0;
    std::uint64_t offset = 0;
  };
  void Map(const DeviceCall& call, const Mapping& mapping);
  void Unmap(const DeviceCall& call, std::uint64_t address, std::uint64_t bytes);

  // All of the device's memory went. What lives then and is followed by no other allocation stays in the state: it is
  // what the program left for the reset.
  void Reset(const DeviceCall& call);

  // The driver said so much of the device is in use, by all. The one when most was held is kept.
  void InUse(int device, std::uint64_t bytes);
  struct Usage {
    std::uint64_t in_use_bytes = 0;
    std::uint64_t asked_bytes = 0;  // that was held then, as it was asked for
  };
  const std::map<int, Usage>& in_use() const { return in_use_; }

  void Note(absl::string_view name, absl::string_view message, std::uint64_t count = 1);
  void Finish(trace::Snapshot& out);

 private:
  struct Allocation {
    int device = 0;
    std::uint64_t bytes = 0;
    Stream stream{};
    trace::StackId stack = trace::kNoStack;
  };
  struct Object {  // memory without an address
    int device = 0;
    std::uint64_t bytes = 0;
    bool was_mapped = false;
    std::map<std::uint64_t, std::uint64_t> mapped = {};  // parts of it: from offset to end
  };
  struct Mapped {
    std::uint64_t end = 0;
    bool is_counted = false;
    std::size_t object = 0;
    std::uint64_t offset = 0;
  };

  void Add(const DeviceCall& call, trace::Action action, std::uint64_t address, std::uint64_t bytes, Stream stream);
  void Give(const DeviceCall& call, std::map<std::uint64_t, Allocation>::iterator it);
  void GiveOverlapping(const DeviceCall& call, std::uint64_t address, std::uint64_t bytes);
  void CatchUpWithReset(const DeviceCall& call);
  void NoteObjects();

  struct Trace {
    trace::TraceTail tail;
    std::vector<trace::Event> events = {};
  };

  std::uint64_t max_events_;
  std::vector<Trace> traces_;                 // index = device
  std::map<std::uint64_t, Allocation> live_;  // by address: the devices of a process share their addresses
  std::map<std::uint64_t, Mapped> mapped_;    // by address
  std::vector<Object> objects_;
  std::map<std::uint64_t, std::size_t> handles_;  // the last object that had it
  std::map<int, DeviceCall> resets_;              // by device, that nothing has followed yet
  std::map<int, std::uint64_t> held_;             // bytes by device
  std::map<int, Usage> in_use_;                   // by device
  std::map<std::string, trace::Note> notes_;
};

// The settings with what the driver said is in use of a device, and what the program had asked for then.
inline std::string DeviceInUseKey(int device) { return trace::DeviceKey(device, "_in_use_bytes"); }
inline std::string DeviceAskedKey(int device) { return trace::DeviceKey(device, "_asked_bytes"); }

// Says that `out` holds such calls: its traits and settings. The notes become settings, which every format keeps.
// `origin`: where the calls come from, in words; empty: a native program that was recorded here.
void DescribeDeviceCalls(absl::string_view origin, trace::Snapshot& out);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_NATIVE_DEVICE_CALLS_H_
