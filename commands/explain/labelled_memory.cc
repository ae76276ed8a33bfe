#include "commands/explain/labelled_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ashlar::answers {
namespace {

using trace::Action;

// By kind and text.
using LinesByText = std::map<std::pair<LabelKind, std::string>, LabelLine>;

void AddBlock(LabelKind kind, const std::string& text, std::uint64_t bytes, LinesByText& lines) {
  if (text.empty()) return;
  LabelLine& line = lines[{kind, text}];
  line.label = text;
  line.kind = kind;
  line.bytes += bytes;
  ++line.blocks;
}

struct Annotated {
  timeline::EventIndex event;
  trace::LabelId label;
};

// By address, in order of time. A text says what a block is, whenever it was put on it.
std::map<std::uint64_t, std::vector<Annotated>> AnnotationsOf(const timeline::Timeline& timeline) {
  std::map<std::uint64_t, std::vector<Annotated>> out;
  for (timeline::EventIndex i = 0; i < timeline.event_count(); ++i) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(i)];
    if (event.action == Action::kAnnotate) out[event.address].push_back({i, event.label});
  }
  return out;
}

// What the sum of a kind of events rises to from its start, given where it ends.
std::optional<std::uint64_t> PeakOf(const trace::EventList& events, std::uint64_t end, Action up, Action down) {
  std::uint64_t sum = end;
  std::uint64_t peak = end;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->action == down) sum += event->size_bytes;
    if (event->action == up) {
      if (sum < event->size_bytes) return std::nullopt;
      sum -= event->size_bytes;
    }
    peak = std::max(peak, sum);
  }
  return peak;
}

}  // namespace

const char* LabelKindName(LabelKind kind) {
  switch (kind) {
    case LabelKind::kMetadata:
      return "metadata";
    case LabelKind::kAnnotation:
      return "annotation";
    case LabelKind::kInternal:
      return "internal";
  }
  return "";
}

std::vector<LabelLine> LinesByLabel(const timeline::Timeline& timeline, timeline::EventIndex moment,
                                    const trace::LabelTable& labels, std::size_t most) {
  if (labels.size() == 0) return {};
  const auto annotations = AnnotationsOf(timeline);
  LinesByText lines;
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    if (!block.IsLiveAfter(moment)) continue;
    if (block.alloc_event >= 0) {
      const auto& event = timeline.events()[static_cast<std::size_t>(block.alloc_event)];
      AddBlock(LabelKind::kMetadata, labels.label(event.label).user_metadata, block.size_bytes, lines);
      AddBlock(LabelKind::kInternal, labels.label(event.label).internal_metadata, block.size_bytes, lines);
    }
    const auto found = annotations.find(block.address);
    if (found == annotations.end()) continue;
    std::set<std::string> texts;
    for (const Annotated& annotated : found->second) {
      const bool is_its = block.alloc_event < annotated.event && annotated.event < block.free_requested_event;
      if (is_its) texts.insert(labels.label(annotated.label).user_metadata);
    }
    for (const std::string& text : texts) AddBlock(LabelKind::kAnnotation, text, block.size_bytes, lines);
  }
  std::vector<LabelLine> out;
  for (auto& [key, line] : lines) out.push_back(std::move(line));
  std::stable_sort(out.begin(), out.end(), [](const LabelLine& a, const LabelLine& b) { return a.bytes > b.bytes; });
  std::map<LabelKind, std::size_t> count;
  std::erase_if(out, [&](const LabelLine& line) { return ++count[line.kind] > most; });
  return out;
}

std::optional<HostFigures> FiguresOf(const trace::HostMemory& host) {
  if (host.IsEmpty()) return std::nullopt;
  HostFigures out;
  for (const trace::SnapshotSegment& segment : host.segments) {
    out.held_bytes += segment.size_bytes;
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kFree) continue;
      out.in_use_bytes += block.size_bytes;
      ++out.blocks;
    }
  }
  out.events = host.events.size();
  out.peak_held_bytes = PeakOf(host.events, out.held_bytes, Action::kSegmentAlloc, Action::kSegmentFree);
  out.peak_in_use_bytes = PeakOf(host.events, out.in_use_bytes, Action::kAlloc, Action::kFreeCompleted);
  return out;
}

}  // namespace ashlar::answers
