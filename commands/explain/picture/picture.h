// What can be drawn of an explained input, as values: its runs (the observed one, one a what-if, the host's pinned
// memory), each at as many moments as its limits allow, and the stacks that the blocks name.
//
//   ExplainSettings options{.picture = PictureLimits{}};
//   const Explanation explanation = *ExplainSnapshot(snapshot, options);
//   for (const RunPicture& run : explanation.picture->runs) Draw(run.moments.allocated_bytes);
//
// A moment stands after an event; moment 0 is the state before the first one. A short run has every moment. Of a long
// one (is_thinned) those are kept where a sum is highest or lowest, and those that somebody points to; blocks that are
// in use at none of them are left out, so that each kept moment is whole. Of more blocks than the limit those in use at
// the verdict's moment are kept, then those with most bytes x events; left_out counts the others. Bytes, and the
// recorder's microseconds. Plain values.
#ifndef ASHLAR_COMMANDS_EXPLAIN_PICTURE_PICTURE_H_
#define ASHLAR_COMMANDS_EXPLAIN_PICTURE_PICTURE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

using Moment = std::uint32_t;

inline constexpr std::int64_t kUnknownBytes = -1;
inline constexpr std::uint32_t kNoText = 0xffffffff;
inline constexpr std::uint32_t kNoHolder = 0xffffffff;

// One element a moment.
struct MomentColumns {
  std::vector<timeline::EventIndex> events;
  std::vector<std::int64_t> places;    // on the axis that all runs of an input share: events of the observed run
  std::vector<std::int64_t> times_us;  // empty: the trace has none. Where an event has none, that of the one before
  std::vector<std::int64_t> requested_bytes;  // kUnknownBytes where a live block's request is not known
  std::vector<std::int64_t> allocated_bytes;
  std::vector<std::int64_t> active_bytes;
  std::vector<std::int64_t> reserved_bytes;
  std::vector<std::int64_t> stranded_bytes;
  std::vector<std::int64_t> private_free_bytes;  // free bytes of private pools

  std::size_t size() const { return events.size(); }
};

// Live after m: alloc <= m < freed; pending: freed <= m < done. A moment that does not come is the count of moments.
struct BlockPicture {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::optional<std::uint64_t> requested_bytes = {};
  timeline::EventIndex alloc_event = timeline::kBeforeWindow;
  Moment alloc = 0;
  Moment freed = 0;
  Moment done = 0;
  std::uint32_t stack = trace::kNoStack;  // index in Picture::stacks
  std::uint32_t text = kNoText;           // index in Picture::texts
  std::uint32_t holder = kNoHolder;       // index in Picture::holders
  std::uint32_t stream = 0;               // indices in RunPicture
  std::uint32_t pool = 0;
  bool is_small_pool = false;
  bool size_is_minimum = false;
};

struct ExtentPicture {
  Moment moment = 0;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
};

// Stands from the moment of its first extent up to `end`; the extent in force is the last that has begun.
struct SegmentPicture {
  std::vector<ExtentPicture> extents;
  Moment end = 0;
  std::uint32_t stack = trace::kNoStack;  // index in Picture::stacks
  std::uint32_t stream = 0;               // indices in RunPicture
  std::uint32_t pool = 0;
  bool is_small_pool = false;
  bool is_expandable = false;
};

struct MomentRange {  // [begin, end)
  Moment begin = 0;
  Moment end = 0;
};

struct PhasePicture {
  std::string name;
  MomentRange moments;
};

struct PeakPicture {
  Moment moment = 0;
  std::uint64_t bytes = 0;
};

// What a limit on blocks leaves out.
struct LeftOutBlocks {
  std::uint64_t blocks = 0;
  double share = 0;  // of the bytes x events of all that are in use at a kept moment
};

enum class RunKind : std::uint8_t { kObserved, kWhatIf, kHost };

struct RunPicture {
  RunKind kind = RunKind::kObserved;
  std::string name;                        // of a what-if its conf; empty: the default settings
  std::optional<std::size_t> what_if_row;  // in Explanation::what_if
  std::uint64_t event_count = 0;           // of the run itself, also where it is thinned
  bool is_thinned = false;
  std::optional<std::uint64_t> capacity_bytes;  // what the allocator can hold
  MomentColumns moments;
  std::vector<BlockPicture> blocks;  // in order of allocation
  LeftOutBlocks left_out;
  std::vector<SegmentPicture> segments;
  std::vector<Stream> streams;
  std::vector<PoolId> pools;
  Moment verdict = 0;  // the last failure, else the peak of allocated memory
  PeakPicture allocated_peak, active_peak, reserved_peak;
  std::vector<Moment> failures;
  std::optional<Moment> projected_from;  // from here on nothing was recorded
  std::vector<MomentRange> steps;        // of the observed run
  std::vector<PhasePicture> phases;
};

struct StackPicture {
  std::string label;                  // the frame nearest to the program's own code
  std::string part;                   // where that line holds more than half (PartLabel); empty: nothing to tell
  std::vector<std::uint32_t> frames;  // innermost first; indices in Picture::frames
};

struct CausePicture {
  std::string name;                 // as in the explanation
  Moment moment = 0;                // of the observed run, where its evidence stands
  std::vector<std::size_t> blocks;  // in the observed run's
  std::vector<std::uint32_t> stacks;
};

struct NamedEvent {
  timeline::EventIndex event = 0;
  Moment moment = 0;
};

struct Picture {
  int device = 0;
  std::vector<RunPicture> runs;  // the observed one first
  std::vector<StackPicture> stacks;
  std::vector<trace::Frame> frames;
  std::vector<std::string> texts;    // that the program put on blocks
  std::vector<std::string> holders;  // by name in the program, as the explanation lists them; empty: no names
  std::vector<std::pair<std::string, std::string>> settings;  // as recorded: key and value
  std::vector<CausePicture> causes;                           // found ones, in the explanation's order
  std::vector<NamedEvent> named_events;                       // that the explanation's sentences name, by event
};

// How much of a run a picture keeps (picture.h).
struct PictureLimits {
  std::size_t observed_moments = 1'000'001;  // a run of fewer events keeps every moment
  std::size_t thinned_moments = 200'000;     // about as many keeps a longer one
  std::size_t what_if_moments = 400'000;     // of all what-ifs of an input together
  std::size_t observed_blocks = 300'000;
  std::size_t what_if_blocks = 320'000;  // of all what-ifs of an input together

  // Of an observed run.
  std::size_t MostMoments(std::size_t events) const {
    return events < observed_moments ? observed_moments : std::min(thinned_moments, observed_moments);
  }
};

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_PICTURE_PICTURE_H_
