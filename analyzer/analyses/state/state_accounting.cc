#include "analyzer/analyses/state/state_accounting.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/state/live_stacks.h"

namespace ashlar::analyses {

core::Accounting AccountState(const timeline::State& state) {
  core::AccountingSum sum;
  std::vector<core::AccountedBlock> occupied;
  for (const timeline::StateSegment& segment : state.segments) {
    occupied.clear();
    for (const timeline::StateBlock& block : segment.blocks) {
      occupied.push_back({block.size_bytes, block.requested_bytes, block.state});
    }
    sum.AddSegment(segment.size_bytes, segment.pool, occupied);
  }
  return sum.result();
}

std::uint64_t LargestFreeBytes(const timeline::State& state, Stream stream, bool is_small_pool, PoolId pool) {
  std::uint64_t largest = 0;
  for (const timeline::StateSegment& segment : state.segments) {
    if (segment.stream != stream || segment.is_small_pool != is_small_pool || segment.pool != pool) continue;
    for (const timeline::FreeRange& range : timeline::FreeRanges(segment))
      largest = std::max(largest, range.size_bytes);
  }
  return largest;
}

namespace {

struct Group {
  core::AccountingSum sum;
  std::uint64_t blocks = 0;
  std::uint64_t segments = 0;

  DiffParts Parts() const {
    DiffParts out{sum.result(), blocks, segments};
    out.bytes.segment_count = segments;
    return out;
  }
};

using Groups = std::map<std::string, Group>;
using SideOfRow = DiffParts DiffRow::*;

// "2.00 MiB to 4.00 MiB": the power of two at or below, and the next.
std::string PowerClass(std::uint64_t bytes) {
  if (bytes == 0) return "0 B";
  const std::uint64_t floor = std::bit_floor(bytes);
  if (floor > UINT64_MAX / 2) return absl::StrCat(FormatBytes(floor), " or more");
  return absl::StrCat(FormatBytes(floor), " to ", FormatBytes(floor * 2));
}

// A block counts as a segment that it fills.
void AddBlock(const timeline::BlockSpan& block, timeline::EventIndex moment, Group& group) {
  const trace::BlockState state = block.IsLiveAfter(moment) ? trace::BlockState::kLive : trace::BlockState::kPending;
  const core::AccountedBlock accounted{block.size_bytes, block.requested_bytes, state};
  group.sum.AddSegment(block.size_bytes, block.pool, {&accounted, 1});
  ++group.blocks;
}

void AddSegment(const timeline::StateSegment& segment, Group& group) {
  std::vector<core::AccountedBlock> occupied;
  for (const timeline::StateBlock& block : segment.blocks) {
    occupied.push_back({block.size_bytes, block.requested_bytes, block.state});
  }
  group.sum.AddSegment(segment.size_bytes, segment.pool, occupied);
  group.blocks += occupied.size();
  ++group.segments;
}

std::string SegmentLabel(const timeline::StateSegment& segment) {
  return absl::StrCat(segment.pool.IsDefault() ? "" : "private, ", segment.is_small_pool ? "small" : "large",
                      segment.is_expandable ? ", expandable, " : ", ", PowerClass(segment.size_bytes));
}

std::string PhaseLabel(const DiffSide& side, const timeline::BlockSpan& block) {
  if (block.alloc_event == timeline::kBeforeWindow) return "before the recording";
  std::string phase = side.phase_of ? side.phase_of(block.alloc_event) : "";
  return phase.empty() ? "no phase known" : phase;
}

// "model.py:56 mlp" without its line: "model.py mlp"; nullopt where the label names none.
struct PlaceOfLabel {
  std::string place;
  std::uint64_t line = 0;
};

std::optional<PlaceOfLabel> LineOf(const std::string& label) {
  const std::size_t colon = label.rfind(".py:");
  if (colon == std::string::npos) return std::nullopt;
  const std::size_t begin = colon + 4;
  const std::size_t end = std::min(label.find(' ', begin), label.size());
  PlaceOfLabel out;
  if (!absl::SimpleAtoi(label.substr(begin, end - begin), &out.line)) return std::nullopt;
  out.place = absl::StrCat(label.substr(0, colon + 3), label.substr(end));
  return out;
}

// The labels of each function of a file, by line.
std::map<std::string, std::map<std::uint64_t, std::string>> ByFunction(const Groups& groups) {
  std::map<std::string, std::map<std::uint64_t, std::string>> out;
  for (const auto& [label, group] : groups) {
    if (const std::optional<PlaceOfLabel> line = LineOf(label)) out[line->place][line->line] = label;
  }
  return out;
}

// The rows of one side under the labels of the other: a function that allocates on as many lines on both sides has them
// in the same order, whatever was inserted above them. A line number alone says nothing where the program was edited.
Groups FollowMovedLines(const Groups& a, const Groups& b) {
  const auto lines_of_a = ByFunction(a);
  const auto lines_of_b = ByFunction(b);
  std::map<std::string, std::string> moved;
  for (const auto& [place, lines] : lines_of_a) {
    const auto there = lines_of_b.find(place);
    if (there == lines_of_b.end() || there->second.size() != lines.size()) continue;
    auto to = there->second.begin();
    for (const auto& [line, label] : lines) moved[label] = (to++)->second;
  }
  Groups out;
  for (const auto& [label, group] : a) {
    const auto to = moved.find(label);
    out[to == moved.end() ? label : to->second] = group;
  }
  return out;
}

class Views {
 public:
  void AddSide(const DiffSide& side, SideOfRow which) {
    Groups sizes, phases, segments;
    Groups& own_stacks = which == &DiffRow::a ? a_stacks_ : b_stacks_;
    std::map<trace::StackId, std::string> labels;
    for (const timeline::BlockSpan& block : side.timeline->blocks()) {
      if (!block.IsActiveAfter(side.moment)) continue;
      const auto [label, is_new] = labels.try_emplace(block.stack);
      if (is_new) label->second = StackLabel(*side.stacks, block.stack);
      AddBlock(block, side.moment, own_stacks[label->second]);
      AddBlock(block, side.moment,
               sizes[absl::StrCat(block.is_small_pool ? "small, " : "large, ", PowerClass(block.size_bytes))]);
      AddBlock(block, side.moment, phases[PhaseLabel(side, block)]);
    }
    for (const timeline::StateSegment& segment : side.timeline->StateAt(side.moment).segments) {
      AddSegment(segment, segments[SegmentLabel(segment)]);
    }
    Put(sizes, which, by_size_);
    Put(phases, which, by_phase_);
    Put(segments, which, by_segment_);
  }

  StateDiff Finish() {
    Put(FollowMovedLines(a_stacks_, b_stacks_), &DiffRow::a, by_stack_);
    Put(b_stacks_, &DiffRow::b, by_stack_);
    return {{}, {}, Sorted(by_stack_), Sorted(by_size_), Sorted(by_phase_), Sorted(by_segment_)};
  }

 private:
  using Rows = std::map<std::string, DiffRow>;

  static void Put(const Groups& groups, SideOfRow which, Rows& rows) {
    for (const auto& [label, group] : groups) {
      DiffRow& row = rows[label];
      row.label = label;
      row.*which = group.Parts();
    }
  }

  static std::vector<DiffRow> Sorted(const Rows& rows) {
    std::vector<DiffRow> out;
    for (const auto& [label, row] : rows) out.push_back(row);
    const auto size = [](const DiffRow& row) {
      return std::max(row.a.bytes.reserved_bytes, row.b.bytes.reserved_bytes) -
             std::min(row.a.bytes.reserved_bytes, row.b.bytes.reserved_bytes);
    };
    std::stable_sort(out.begin(), out.end(), [&size](const DiffRow& x, const DiffRow& y) { return size(x) > size(y); });
    return out;
  }

  Groups a_stacks_, b_stacks_;
  Rows by_stack_, by_size_, by_phase_, by_segment_;
};

DiffParts Whole(const DiffSide& side) {
  const timeline::State state = side.timeline->StateAt(side.moment);
  DiffParts out{AccountState(state), 0, state.segments.size()};
  for (const timeline::StateSegment& segment : state.segments) out.blocks += segment.blocks.size();
  return out;
}

}  // namespace

StateDiff DiffStates(const DiffSide& a, const DiffSide& b) {
  Views views;
  views.AddSide(a, &DiffRow::a);
  views.AddSide(b, &DiffRow::b);
  StateDiff out = views.Finish();
  out.a = Whole(a);
  out.b = Whole(b);
  return out;
}

}  // namespace ashlar::analyses
