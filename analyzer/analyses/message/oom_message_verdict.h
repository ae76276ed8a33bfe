// Judges an out-of-memory message by itself: where the memory went, whether the request would have fitted without
// holes, and so which kind of failure it was.
//
// Contract: every figure is an interval (the print rounds), sums and differences carry the intervals, and a verdict is
// certain only where the whole interval agrees. What the message does not tell is nullopt, never 0. Bytes throughout;
// intervals here include both ends. Pure functions, safe from any thread.
//
//   gap      = reserved - allocated         PyTorch throws only after it has synchronised its events and returned every
//                                           whole free segment: the gap is stranded memory (and private pools' holes)
//   outside  = total - reserved - free      contexts, libraries, other processes
//   headroom = (total - outside) - (allocated + tried) = gap + free - tried
//
// Example:
//   for (const formats::OomMessage& message : formats::FindOomMessages(text)) {
//     const OomMessageVerdict verdict = JudgeOomMessage(message, {});
//     std::cout << VerdictName(verdict.kind) << ": " << verdict.evidence.front();
//   }
#ifndef ASHLAR_ANALYZER_ANALYSES_MESSAGE_OOM_MESSAGE_VERDICT_H_
#define ASHLAR_ANALYZER_ANALYSES_MESSAGE_OOM_MESSAGE_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/oom/oom_message.h"

namespace ashlar::analyses {

enum class OomVerdict {
  kCapacity,       // does not fit even without holes: no allocator setting can help
  kNearlyFull,     // would fit without holes, and with so little to spare that no setting can help
  kFragmentation,  // fits without holes, yet the free memory is smaller than the request
  kOutside,        // fits once memory held outside this process is returned
  kLimit,          // a limit below the device's capacity stopped it
  kLeak,           // each step leaves memory behind: it fails sooner or later under any setting
  kHostMemory,     // memory of the host ran out, not the device's
  kHealthy,        // nothing failed
  kUnknown,        // the input does not tell enough
};

absl::string_view VerdictName(OomVerdict verdict);  // "capacity", "nearly_full", ...
std::string VerdictWords(OomVerdict verdict);       // for people: "nearly full"

// A measured quantity: low <= true value <= high; `value` from the middles of the printed figures.
struct ByteSpan {
  std::int64_t low_bytes = 0;
  std::int64_t value_bytes = 0;
  std::int64_t high_bytes = 0;

  bool operator==(const ByteSpan&) const = default;
};

// total = allocated + pending + stranded + whole-free + private pools' holes + outside + free; allocated = live +
// rounding. Middles of the printed figures; the parts that are known sum to the total.
struct OomAccounting {
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> allocated_bytes;  // private pools' free blocks, which PyTorch counts in, taken out again
  std::optional<std::uint64_t> reserved_bytes;
  std::optional<std::uint64_t> live_bytes;
  std::optional<std::uint64_t> rounding_bytes;
  std::optional<std::uint64_t> pending_bytes;
  std::optional<std::uint64_t> stranded_bytes;  // holds the private pools' holes too where those are nullopt
  std::optional<std::uint64_t> whole_free_bytes;
  std::optional<std::uint64_t> private_pool_bytes;
  std::optional<std::uint64_t> outside_bytes;
  std::optional<std::uint64_t> free_bytes;

  bool operator==(const OomAccounting&) const = default;
};

struct OomJudgeOptions {
  std::optional<std::uint64_t> capacity_bytes;  // of the device, used where the message does not tell it
  std::string unified_memory_card = {};         // the device by its size, where its memory is the host's own
};

// One thing to try where a message was raised: what to do, as an order, and what to write or start for it.
struct OomTry {
  std::string what;
  std::vector<std::string> lines = {};
};

struct OomMessageVerdict {
  OomVerdict kind = OomVerdict::kUnknown;
  bool verdict_certain = false;  // false: rounding, or something the message does not tell, could change the verdict
  OomAccounting accounting;
  std::optional<std::uint64_t> tried_bytes;
  std::optional<std::uint64_t> request_bytes;  // only where the message tells it to the byte
  std::optional<ByteSpan> request_interval;    // what the program asked, given what was tried
  std::optional<ByteSpan> tried_interval;
  std::optional<ByteSpan> gap;
  std::optional<ByteSpan> outside;
  std::optional<ByteSpan> headroom;        // at the upper end of the request; negative: cannot fit without holes
  std::optional<ByteSpan> limit_headroom;  // the same under the limit the message names
  std::optional<ByteSpan> missing;         // tried - free
  std::optional<ByteSpan> others;          // held by other processes, as far as the message names them
  bool is_process_limit = false;           // of a kLimit: set for this process, as PyTorch's memory fraction is
  std::optional<std::uint64_t> own_bytes;  // held by this process, where the message tells it
  std::optional<std::uint64_t> own_outside_bytes;  // of those, what its allocator did not reserve
  std::vector<std::uint64_t> other_processes;      // of each of them, in the order told
  std::string tried_meaning;                       // what "tried" means in this family, one sentence
  std::vector<std::string> evidence;               // two or three plain sentences, the verdict first
  std::vector<OomTry> tries;            // in this order, in the words of who raised it; empty: PyTorch's settings help
  std::string levers;                   // the same as one sentence
  std::string next_step;                // two sentences: how to learn more
  std::vector<std::string> next_lines;  // the exact lines for it (Python), empty where there are none
  std::vector<trace::Note> notes;       // the message's own notes come first

  bool HasNote(absl::string_view name) const;
};

OomMessageVerdict JudgeOomMessage(const formats::OomMessage& message, const OomJudgeOptions& options);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_MESSAGE_OOM_MESSAGE_VERDICT_H_
