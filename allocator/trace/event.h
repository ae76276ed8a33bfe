// The event vocabulary: what an allocator decided, one event a decision. A recorder writes these, a snapshot holds
// them, a replay makes them again; they are compared field by field.
//
//   address      device address; for kOom the device's free bytes, as PyTorch records it
//   size_bytes   requested bytes for kAlloc and kFree*; the rounded request for kOom; segment or mapped bytes for
//                kSegment*
//   stream       the stream the block or segment belongs to
#ifndef ASHLAR_ALLOCATOR_TRACE_EVENT_H_
#define ASHLAR_ALLOCATOR_TRACE_EVENT_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "allocator/trace/event_pool.h"

namespace ashlar::trace {

enum class Action : std::uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
  kSnapshot,
  kAnnotate,
  kUnknown,  // an action this version does not know; the reader's notes name and count it
};

// An event by which the allocator obtained memory of the device.
constexpr bool IsGrowth(Action action) { return action == Action::kSegmentAlloc || action == Action::kSegmentMap; }

// PyTorch's spelling ("alloc", "free_requested", ...).
absl::string_view ActionName(Action action);
std::optional<Action> ParseAction(absl::string_view name);

// Index of an interned call stack in a StackTable.
using StackId = std::uint32_t;
inline constexpr StackId kNoStack = std::numeric_limits<StackId>::max();

// Index of the texts that the program put on an event, in a LabelTable.
using LabelId = std::uint32_t;
inline constexpr LabelId kNoLabel = std::numeric_limits<LabelId>::max();

inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

inline constexpr std::uint32_t kNoByte = std::numeric_limits<std::uint32_t>::max();

// 56 bytes: traces of ten million events are held whole.
struct Event {
  Action action = Action::kUnknown;
  EventPool pool;                     // where the trace names one (PyTorch entries do from 2026 on)
  std::uint32_t file_byte = kNoByte;  // where its record begins in the file it was read from, for error messages
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  Stream stream{};
  std::int64_t time_us = kNoTime;  // microseconds of the recorder's clock, kNoTime where the trace has none
  StackId stack = kNoStack;
  LabelId label = kNoLabel;
  std::uint64_t block_size_bytes = 0;  // kAlloc, kFree*: what the block spans, where the record says; else 0
};
static_assert(sizeof(Event) == 56);

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_EVENT_H_
