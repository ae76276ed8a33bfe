// Where the memory was at the moment that an explanation looks at: the accounting, the peaks, who holds it and what
// pins segments. What is not known is nullopt, never 0. All sizes are bytes.
//
//   const Memory memory = MemoryAt(history, {.total_bytes = 16 * kGiB});
//   memory.holders.stacks.front().label   // "train.py:58 loss"
//
// Two sums hold wherever all their parts are known:
//   total    = reserved + outside + free
//   reserved = live + rounding + pending + stranded + whole_free + private_pool
#ifndef ASHLAR_COMMANDS_EXPLAIN_MEMORY_H_
#define ASHLAR_COMMANDS_EXPLAIN_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/trace/note.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/holders/held_by_name.h"
#include "analyzer/analyses/message/oom_message_verdict.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/timeline/timeline.h"
#include "commands/explain/by_library.h"
#include "commands/explain/labelled_memory.h"

namespace ashlar::answers {

using analyses::OomAccounting;

struct PeakFigures {
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> active_bytes;
  std::optional<std::uint64_t> reserved_bytes;
  std::optional<double> utilisation;  // peak allocated / peak reserved
};

// Who holds what is live at the moment, most bytes first.
struct LiveHolders {
  std::vector<analyses::LabelledStack> stacks = {};
  std::vector<analyses::LiveSize> sizes = {};      // in their place, where the input names no block
  std::vector<LabelLine> labels = {};              // by the texts that the program put on them
  std::optional<analyses::HeldByName> names = {};  // by what holds them in the program; nullopt: the input has no names
};

// Pins of one line of code; of one block each where the trace has no stacks.
struct PinLine {
  std::string label;
  std::uint64_t blame_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t blocks = 0;
  std::optional<timeline::EventIndex> oldest_event = {};  // nullopt: allocated before the window
  std::string phase = {};                                 // of the oldest; empty = not known
};

// The blame of the lines and the others sums to the stranded bytes.
struct PinLines {
  std::optional<std::uint64_t> stranded_segments = {};
  std::optional<std::uint64_t> pinning_blocks = {};
  std::vector<PinLine> lines = {};  // most blame first
  std::uint64_t other_blame_bytes = 0;
  std::uint64_t other_blocks = 0;
};

// Of a program that calls the device itself: what it had not freed when the trace ends.
struct LiveAtEnd {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::vector<analyses::LabelledStack> lines = {};  // most bytes first
};

struct Memory {
  std::string moment = {};  // "the out-of-memory error, event 81,402"
  OomAccounting accounting = {};
  PeakFigures peak = {};
  LiveHolders holders = {};
  PinLines pins = {};
  std::optional<HostFigures> host = {};      // pinned memory of the host; nullopt: not recorded
  std::optional<LiveAtEnd> at_end = {};      // nullopt: a caching allocator's trace, which says that itself
  std::optional<ByLibrary> by_library = {};  // likewise, and where no file of code is known
};

// What is known of the device beside the timeline.
struct KnownDevice {
  std::optional<std::uint64_t> total_bytes = {};
  std::optional<std::uint64_t> outside_bytes = {};  // without an out-of-memory event (a simulated device: 0)
};

// All of it but labels, host, at_end and by_library, which no timeline tells.
Memory MemoryAt(const analyses::CauseHistory& history, const KnownDevice& device);
// Where the device is said to have less than what was held of it, which MemoryAt then leaves out.
std::vector<trace::Note> NotesOnCapacity(const Memory& memory, const KnownDevice& device);

PeakFigures PeaksOf(const timeline::Timeline& timeline);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_MEMORY_H_
