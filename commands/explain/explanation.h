// The answer of `ashlar explain` as a value: made from a snapshot, a request trace or an out-of-memory message, and
// printed as text or JSON. What is not known is nullopt, never 0. All sizes are bytes.
//
// Two sums hold wherever all their parts are known:
//   total    = reserved + outside + free
//   reserved = live + rounding + pending + stranded + whole_free + private_pool
#ifndef ASHLAR_COMMANDS_EXPLAIN_EXPLANATION_H_
#define ASHLAR_COMMANDS_EXPLAIN_EXPLANATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/core/accounting.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/analyses/message/oom_message_verdict.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/state/pin_blame.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/replay/warm_replay.h"
#include "analyzer/timeline/timeline.h"
#include "analyzer/whatif/advice.h"
#include "analyzer/whatif/fix_tests.h"
#include "analyzer/whatif/own_allocator.h"
#include "analyzer/whatif/program_remedies.h"
#include "analyzer/whatif/what_if.h"
#include "commands/explain/labelled_memory.h"

namespace ashlar::answers {

// The part of an explanation about a failed request and about stranded memory: the analyses' values with stacks turned
// into lines.
struct FailureLines {
  analyses::FailedRequest request;
  std::vector<analyses::LabelledStack> release = {};  // who allocated the blocks of its release set, most bytes first
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
  std::vector<PinLine> lines = {};  // most blame first
  std::uint64_t other_blame_bytes = 0;
  std::uint64_t other_blocks = 0;
};

// `stacks` may be nullptr.
FailureLines DescribeFailure(analyses::FailedRequest request, const timeline::Timeline& timeline,
                             const trace::StackTable* stacks);
PinLines DescribePins(const analyses::PinBlame& pins, const analyses::Steps& steps, const trace::StackTable* stacks);

// The program behind a timeline as an answer shows it: its steps, the step and phase of the moment, its phases and what
// each step leaves behind.
struct LeakLine {  // the leaking stacks of one line of the program
  std::string label;
  std::uint64_t bytes_per_step = 0;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  // alive at the failure or peak, or the end of the last step
};

struct ProgramView {
  analyses::Steps steps;
  std::string moment = {};           // "step 12, backward"; empty where not known
  std::vector<LeakLine> leaks = {};  // most bytes a step first
};

ProgramView ViewProgram(analyses::Steps steps, timeline::EventIndex moment, const trace::StackTable* stacks);

using analyses::ByteSpan;
using analyses::OomAccounting;
using analyses::OomVerdict;

struct Picture;  // explain/picture/picture.h

struct PeakFigures {
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> active_bytes;
  std::optional<std::uint64_t> reserved_bytes;
  std::optional<double> utilisation;  // peak allocated / peak reserved
};

// One of the causes looked for, and the replay that took it away.
struct ExplainedCause {
  analyses::CauseFinding finding;
  std::optional<whatif::FixTest> fix = {};  // nullopt: not found, or no replay can take it away
  std::vector<std::string> lines = {};      // of the program, most bytes first
};

// Of a program that calls the device itself: what it had not freed when the trace ends.
struct LiveAtEnd {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::vector<analyses::LabelledStack> lines = {};  // most bytes first
};

// Where in the program a failure was raised, from the traceback beside its message.
struct RaisedAt {
  std::string line;               // "model.py:56 mlp": the innermost of the program's own
  std::string code;               // of that line; empty where it was not printed
  std::vector<std::string> path;  // the program's own lines that lead there and itself, outermost first
};

// Of an out-of-memory message: who raised it, and the figures beside those of the accounting.
struct MessageFacts {
  std::string family;
  std::optional<int> device;
  bool is_cut_off = false;
  std::uint64_t told = 1;  // how often the text tells this same failure
  std::vector<formats::NamedFigure> figures;
};

// What earlier steps left behind, alive at the moment looked at.
struct GrowingBytes {
  std::uint64_t bytes = 0;
  std::uint64_t bytes_per_step = 0;
};

struct Explanation {
  std::string name;      // of the input, where ExplainTogether made this; no report prints it
  std::string source;    // what was read: "PyTorch snapshot, device 0, 9,670 events"
  std::string headline;  // what happened
  OomVerdict verdict = OomVerdict::kUnknown;
  bool verdict_certain = true;
  std::vector<std::string> evidence;  // plain sentences, the verdict's own first
  std::string moment;                 // of the accounting and the stacks: "the out-of-memory error, event 81,402"
  OomAccounting accounting;
  std::optional<std::uint64_t> stranded_segments;
  std::optional<std::uint64_t> pinning_blocks;
  std::optional<std::uint64_t> tried_bytes;
  std::optional<std::uint64_t> request_bytes;
  std::optional<ByteSpan> request_interval;
  std::optional<ByteSpan> headroom;
  PeakFigures peak;
  std::vector<analyses::LabelledStack> stacks;
  std::vector<analyses::LiveSize> sizes;  // in their place, where the input names no block
  std::vector<LabelLine> labels;          // of the live blocks, by the texts that the program put on them
  std::optional<HostFigures> host;        // pinned memory of the host; nullopt: not recorded
  std::optional<LiveAtEnd> at_end;        // nullopt: a caching allocator's trace, which says that itself
  std::optional<MessageFacts> message;    // nullopt: no message
  std::optional<RaisedAt> raised_at;      // nullopt: no traceback beside the message, or no message
  std::optional<FailureLines> failure;    // of the last out-of-memory error of a trace
  PinLines pins;
  ProgramView program;
  std::optional<GrowingBytes> growing;                  // nullopt: nothing piles up, or no history tells
  std::vector<ExplainedCause> causes;                   // found ones first
  std::vector<whatif::ProgramRemedy> program_remedies;  // in the order of the causes
  std::optional<replay::Fidelity> fidelity;
  std::string replayed_as;  // version, order, settings; empty without a replay
  std::vector<whatif::WhatIfRow> what_if;
  std::optional<std::uint64_t> what_if_capacity_bytes;
  whatif::Advice advice;
  std::optional<whatif::OwnAllocator> own;  // nullopt: not asked for (own_allocator.h)
  std::string next_step;
  std::vector<std::string> next_lines;
  std::vector<trace::Note> notes;
  std::shared_ptr<const Picture> picture;  // where it was asked for and there are events or a state behind this
};

// Fills the parts of `accounting` that a state tells.
void SetAccounting(const core::Accounting& state, Explanation& explanation);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_EXPLANATION_H_
