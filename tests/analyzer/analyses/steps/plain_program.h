// A program written down as requests alone, without an allocator: a timeline whose blocks lie one behind the other in
// one boundless segment. For analyses that look at requests, lifetimes and stacks, not at where blocks lie.
//
//   PlainProgram program;
//   program.At("model.py", 45, "forward");
//   const int block = program.Allocate(3 * kMiB);
//   program.Free(block);
//   timeline::Timeline timeline = program.Finish();
#ifndef ASHLAR_TESTS_ANALYZER_ANALYSES_STEPS_PLAIN_PROGRAM_H_
#define ASHLAR_TESTS_ANALYZER_ANALYSES_STEPS_PLAIN_PROGRAM_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::tests {

struct PlainFrame {
  const char* file;
  int line;
  const char* function;
};

class PlainProgram {
 public:
  // The stack of the requests from now on, innermost frame first.
  void At(std::initializer_list<PlainFrame> frames) {
    std::vector<trace::FrameId> ids;
    for (const PlainFrame& frame : frames) ids.push_back(stacks_.InternFrame(frame.file, frame.line, frame.function));
    stack_ = stacks_.InternStack(ids);
  }
  void At(const char* file, int line, const char* function) { At({{file, line, function}}); }
  void WithoutStack() { stack_ = trace::kNoStack; }

  int Allocate(std::uint64_t bytes) {
    timeline::BlockSpan block;
    block.address = next_address_;
    block.size_bytes = bytes;
    block.requested_bytes = bytes;
    block.stack = stack_;
    block.alloc_event = Add(trace::Action::kAlloc, block, stack_);
    next_address_ += bytes;
    totals_.allocated_bytes += bytes;
    totals_.active_bytes += bytes;
    totals_.requested_bytes += bytes;
    columns_.totals.push_back(totals_);
    columns_.blocks.push_back(block);
    return static_cast<int>(columns_.blocks.size()) - 1;
  }

  void Free(int index) {
    timeline::BlockSpan& block = columns_.blocks[static_cast<std::size_t>(index)];
    totals_.allocated_bytes -= block.size_bytes;
    totals_.requested_bytes -= block.size_bytes;
    block.free_requested_event = Add(trace::Action::kFreeRequested, block, trace::kNoStack);
    columns_.totals.push_back(totals_);
    totals_.active_bytes -= block.size_bytes;
    block.free_completed_event = Add(trace::Action::kFreeCompleted, block, trace::kNoStack);
    columns_.totals.push_back(totals_);
  }
  void Free(std::vector<int>& blocks) {
    for (; !blocks.empty(); blocks.pop_back()) Free(blocks.back());
  }

  void Mark(const char* stage, std::string name) {
    annotations_.push_back({stage, std::move(name), 0, time_us_});
    ++time_us_;
  }

  timeline::EventIndex Now() const { return static_cast<timeline::EventIndex>(columns_.events.size()); }
  const trace::StackTable& stacks() const { return stacks_; }
  const std::vector<trace::Annotation>& annotations() const { return annotations_; }

  timeline::Timeline Finish() const {
    timeline::TimelineColumns columns = columns_;
    timeline::SegmentSpan segment;
    segment.extents.push_back({timeline::kBeforeWindow, kFirstAddress, next_address_ - kFirstAddress});
    columns.segments.push_back(segment);
    columns.start_totals.reserved_bytes = next_address_ - kFirstAddress;
    for (timeline::Totals& totals : columns.totals) totals.reserved_bytes = columns.start_totals.reserved_bytes;
    columns.reserved_peak.bytes = columns.start_totals.reserved_bytes;
    for (std::size_t i = 0; i < columns.totals.size(); ++i) {
      const auto event = static_cast<timeline::EventIndex>(i);
      const timeline::Totals& totals = columns.totals[i];
      if (totals.allocated_bytes > columns.allocated_peak.bytes)
        columns.allocated_peak = {totals.allocated_bytes, event};
      if (totals.active_bytes > columns.active_peak.bytes) columns.active_peak = {totals.active_bytes, event};
    }
    return timeline::Timeline(std::move(columns));
  }

 private:
  static constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 40;

  timeline::EventIndex Add(trace::Action action, const timeline::BlockSpan& block, trace::StackId stack) {
    trace::Event event;
    event.action = action;
    event.address = block.address;
    event.size_bytes = block.size_bytes;
    event.stack = stack;
    event.time_us = time_us_;
    time_us_ += 2;
    columns_.events.push_back(event);
    return static_cast<timeline::EventIndex>(columns_.events.size()) - 1;
  }

  trace::StackTable stacks_;
  trace::StackId stack_ = trace::kNoStack;
  timeline::TimelineColumns columns_;
  timeline::Totals totals_;
  std::vector<trace::Annotation> annotations_;
  std::uint64_t next_address_ = kFirstAddress;
  std::int64_t time_us_ = 1'000'000;
};

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ANALYZER_ANALYSES_STEPS_PLAIN_PROGRAM_H_
