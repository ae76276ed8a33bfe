#include "analyzer/replay/pool_restores.h"

#include <iterator>

namespace ashlar::replay {
namespace {

using trace::Action;
using trace::Event;

bool IsSameCall(const Event& a, const Event& b) { return a.stack == b.stack && a.stream == b.stream; }

bool IsFreedAtOnce(const std::vector<Event>& events, std::size_t i) {
  return i + 1 < events.size() && events[i].action == Action::kFreeRequested &&
         events[i + 1].action == Action::kFreeCompleted && events[i + 1].address == events[i].address;
}

// Adds the segment that was put back from the run's end on; false where none was.
bool AddSegment(const std::vector<Event>& events, const SegmentRanges& ranges, PutBackRun& run) {
  const std::size_t first = run.end;
  if (first >= events.size() || events[first].action != Action::kAlloc) return false;
  const std::uint64_t end = ranges.EndOf(events[first].address);
  std::uint64_t at = events[first].address;
  std::size_t i = first;
  while (i < events.size() && at < end && events[i].action == Action::kAlloc && events[i].address == at &&
         IsSameCall(events[i], events[run.begin])) {
    at += events[i++].size_bytes;
  }
  if (end == 0 || at != end) return false;
  const std::size_t allocs_end = i;
  run.is_free.resize(allocs_end - run.begin);
  std::size_t block = first;
  for (; IsFreedAtOnce(events, i) && IsSameCall(events[i], events[run.begin]); i += 2) {
    while (block < allocs_end && events[block].address < events[i].address) ++block;
    if (block == allocs_end || events[block].address != events[i].address) break;
    run.is_free[block - run.begin] = true;
  }
  run.is_certain |= i > allocs_end || allocs_end - first > 1;
  run.end = i;
  run.is_free.resize(run.end - run.begin);
  return true;
}

}  // namespace

SegmentRanges::SegmentRanges(const timeline::StartState& start) {
  for (const timeline::StateSegment& segment : start.segments) {
    Add(segment.address, segment.End(), segment.is_expandable);
  }
}

void SegmentRanges::Apply(const Event& event) {
  const std::uint64_t end = event.address + event.size_bytes;
  if (trace::IsGrowth(event.action)) Add(event.address, end, event.action == Action::kSegmentMap);
  if (event.action == Action::kSegmentFree || event.action == Action::kSegmentUnmap) Remove(event.address, end);
}

std::uint64_t SegmentRanges::EndOf(std::uint64_t begin) const {
  const auto it = ends_.find(begin);
  return it == ends_.end() ? 0 : it->second;
}

void SegmentRanges::Add(std::uint64_t begin, std::uint64_t end, bool joins) {
  const auto next = ends_.upper_bound(begin);
  if (joins && next != ends_.begin() && std::prev(next)->second == begin) {
    std::prev(next)->second = end;
  } else {
    ends_[begin] = end;
  }
}

void SegmentRanges::Remove(std::uint64_t begin, std::uint64_t end) {
  auto it = ends_.upper_bound(begin);
  if (it == ends_.begin()) return;
  --it;
  const std::uint64_t its_end = it->second;
  if (its_end <= begin) return;
  if (it->first < begin) {
    it->second = begin;
  } else {
    ends_.erase(it);
  }
  if (end < its_end) ends_[end] = its_end;
}

PutBackRun FindPutBack(const std::vector<Event>& events, std::size_t begin, const SegmentRanges& ranges) {
  PutBackRun out{.begin = begin, .end = begin};
  while (AddSegment(events, ranges, out)) {
  }
  return out;
}

}  // namespace ashlar::replay
