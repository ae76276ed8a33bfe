// A snapshot: the final state of an allocator (segments cut into blocks) and, per device, the window of events that
// led to it. Readers fill it from files, the live allocator fills it from itself, writers and analyses take it.
//
//   segment  [address .................... address + size_bytes)
//            | live 512 | free 1536 | live ... | pending ... |      blocks tile the segment, in address order
#ifndef ASHLAR_ALLOCATOR_TRACE_SNAPSHOT_H_
#define ASHLAR_ALLOCATOR_TRACE_SNAPSHOT_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/trace/event.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/holders.h"
#include "allocator/trace/note.h"
#include "allocator/trace/stack_table.h"
#include "ashlar/snapshot.h"

namespace ashlar::trace {

using ashlar::BlockState;

struct SnapshotBlock {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  // What the caller asked for. Meaningless for free blocks (PyTorch leaves a stale value there); nullopt where the
  // trace does not say.
  std::optional<std::uint64_t> requested_bytes;
  BlockState state = BlockState::kFree;
  StackId stack = kNoStack;

  bool operator==(const SnapshotBlock&) const = default;
};

struct SnapshotSegment {
  int device = 0;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  Stream stream{};
  bool is_small_pool = false;
  bool is_expandable = false;
  PoolId pool;
  StackId stack = kNoStack;
  std::vector<SnapshotBlock> blocks;

  bool operator==(const SnapshotSegment&) const = default;
};

// The settings the recording allocator ran under. Absent before PyTorch 2.3.
struct RecordedSettings {
  std::string conf;                                   // PYTORCH_CUDA_ALLOC_CONF as recorded
  std::optional<std::uint64_t> max_split_size_bytes;  // nullopt = unlimited
  double garbage_collection_threshold = 0;
  bool expandable_segments = false;
  std::map<std::string, std::string> values;  // every key, printed; what this version does not know included
};

// What a trace knows. What it does not know is said to be "not in this trace", never 0.
struct Traits {
  bool has_time = false;
  bool has_stacks = false;
  bool has_requested_bytes = false;
  bool has_pool_ids = false;  // events name their pool
  bool has_labels = false;    // events have user_metadata, be it empty
  bool has_host = false;      // there is a part for pinned memory of the host, be it empty
  bool has_settings = false;
  bool has_block_addresses = true;  // false: block addresses are the segment's plus the sizes before (PyTorch 2.0)
  std::string generation;           // "history (2.0)", "frames (2.1 to 2.2)", ... for people
};

// A mark the program set beside the trace (torch.profiler.record_function, optimizer steps): START and END pairs.
struct Annotation {
  std::string stage;  // "START", "END"
  std::string name;
  int device = 0;
  std::int64_t time_us = kNoTime;
};

// Pinned memory of the host, which another allocator keeps (record_pinned_host_memory, PyTorch 2.14 on). Its segments
// have device 0 here; PyTorch writes -1.
struct HostMemory {
  std::vector<SnapshotSegment> segments = {};  // by address
  EventList events = {};                       // oldest first

  bool IsEmpty() const { return segments.empty() && events.empty(); }
};

struct ReservedRange {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;

  // Whose it is; nullopt where the recording does not say.
  struct Lane {
    Stream stream{};
    bool is_small_pool = false;
    PoolId pool;

    auto operator<=>(const Lane&) const = default;
  };
  std::optional<Lane> lane = {};

  bool operator==(const ReservedRange&) const = default;
  bool operator<(const ReservedRange& other) const {
    return std::tie(address, size_bytes, lane) < std::tie(other.address, other.size_bytes, other.lane);
  }
};

// Mapped memory that is one handle of the driver, larger than the pages around it: it is unmapped as a whole.
struct LargePage {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;

  bool operator==(const LargePage&) const = default;
};

// The state in which a recording begins. Where its oldest events were dropped as it was read, the large pages alone.
struct RecordedStart {
  std::vector<SnapshotSegment> segments;    // in the order in which they were obtained
  bool has_segments = false;                // else they are a ring's: their order at most, without blocks
  std::vector<ReservedRange> reservations;  // around expandable segments, in that order
  bool has_reservations = true;
  std::vector<LargePage> large_pages;  // in them, by address; Policy::kAshlar only

  bool operator==(const RecordedStart&) const = default;
};

// What a recording of our own says beside the events (allocator/core/recorder.h): no guess is left about these.
struct RecordingInfo {
  std::string compat;      // whose rules, as policy::CompatName prints it
  std::string free_order;  // of equally big free blocks, as policy::FreeOrderName prints it
  int device = 0;          // the one that was recorded
  std::uint64_t device_total_bytes = 0;
  std::optional<std::uint64_t> limit_bytes;  // when recording began; changes are facts
  bool is_complete = false;                  // it was ended, not cut off
  std::uint64_t events_before = 0;           // that a ring no longer had
  std::vector<Fact> facts;                   // oldest first
  bool has_calls = false;                    // the facts name every call, refusal and reservation
  std::vector<ReservedRange> reservations;   // around expandable segments, at the times that it holds the state of
  std::optional<RecordedStart> start;        // nullopt: the recording does not say, or says it through its events

  bool operator==(const RecordingInfo&) const = default;
};

// Which part of a longer trace a snapshot holds, of one device: the events [events_before, events_before + n) of it, n
// those that are held, and the segments as they stand after them. What all of its events sum up to is beside it.
struct TraceWindow {
  std::uint64_t events_before = 0;
  std::uint64_t events_after = 0;
  std::uint64_t failures = 0;  // kOom
  std::uint64_t allocated_peak_bytes = 0;
  std::uint64_t reserved_peak_bytes = 0;

  bool IsWhole() const { return events_before == 0 && events_after == 0; }
  bool operator==(const TraceWindow&) const = default;
};

struct Snapshot {
  std::vector<SnapshotSegment> segments;  // by device, then address
  std::vector<EventList> device_traces;   // index = device; oldest first
  std::vector<TraceWindow> windows;       // index = device; empty: the traces are held whole
  std::vector<Annotation> annotations;    // in the file's order; empty before PyTorch 2.5
  StackTable stacks;
  LabelTable labels;  // of the events
  HostMemory host;
  std::optional<Holders> holders;       // nullopt: nobody wrote down who held the live blocks
  std::optional<Holders> peak_holders;  // likewise, at a peak, which is earlier than the snapshot
  std::optional<RecordedSettings> settings;
  std::optional<RecordingInfo> recording;  // nullopt: another allocator's, or converted from such
  Traits traits;
  std::vector<Note> notes;
};

// A setting that says so in every format: the events are calls of a program on device memory itself, each served by the
// device as it was asked, with no caching allocator between. Its segments hold one block each.
inline constexpr char kDeviceCallsKey[] = "ashlar_device_calls";
inline bool RecordsDeviceCalls(const Snapshot& snapshot) {
  return snapshot.settings.has_value() && snapshot.settings->values.count(kDeviceCallsKey) > 0;
}

// Where such events come from, in words; without it: from a native program that was recorded here.
inline constexpr char kCallsOriginKey[] = "ashlar_calls_origin";

// Settings of ours about a device begin so: then its number, and what it is.
inline constexpr char kDeviceKeys[] = "ashlar_device_";
inline std::string DeviceKey(int device, const char* what) { return kDeviceKeys + std::to_string(device) + what; }

// The setting with a device's name, where such a trace says it.
inline std::string DeviceNameKey(int device) { return DeviceKey(device, "_name"); }

// The settings with what each library of the process held of a device when the snapshot was made: this and a number
// from 0 on. "1048576 2 libnccl.so.2": bytes, allocations, the file of the code that asked.
inline std::string DeviceLibraryKey(int device) { return DeviceKey(device, "_library_"); }

// The setting with a device's memory, where such a trace says it.
inline std::string DeviceTotalKey(int device) { return DeviceKey(device, "_total_bytes"); }

// Settings of such a trace that begin so are notes on it, "count message" under the note's name: no format has a place
// for notes, and what was left out of a trace belongs to it.
inline constexpr char kDeviceCallsNote[] = "ashlar_note_";

// The age of free blocks at a recording's start: how many searches of their pool there were since they became free.
// Garbage collection goes by it, and asks only about blocks that fill a segment, so only those have an age. A free
// block has no request, so its age stands in that field; snapshots of other origin may hold anything there.

inline void SetFreeAge(SnapshotBlock& block, std::uint64_t searches) { block.requested_bytes = searches; }

// Of a block of RecordedStart; nullopt: the recording does not say, or the block is not free.
inline std::optional<std::uint64_t> FreeAgeOf(const SnapshotBlock& block) {
  return block.state == BlockState::kFree ? block.requested_bytes : std::nullopt;
}

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_SNAPSHOT_H_
