#include "allocator/core/captured_frees.h"

#include <optional>

#include "allocator/policy/heap.h"

namespace ashlar::core {

bool CapturedFrees::MayComplete(const CapturedFree& free, Stream stream) {
  return !free.last_uses.nodes.empty() && free.block->segment->lane->stream == stream;
}

void CapturedFrees::Add(policy::Block* block, StreamList streams, bool asks_graph) {
  device::CapturePoint uses;
  if (asks_graph) uses = LastUses(block->segment->lane->stream, streams);
  waiting_.push_back({block, std::move(streams), std::move(uses)});
}

device::CapturePoint CapturedFrees::LastUses(Stream own, const StreamList& others) {
  std::optional<device::CapturePoint> uses = device_.FindCapture(own);
  if (!uses.has_value()) return {};
  for (const Stream stream : others) {
    const std::optional<device::CapturePoint> point = device_.FindCapture(stream);
    if (!point.has_value() || point->capture != uses->capture) return {};
    uses->nodes.insert(uses->nodes.end(), point->nodes.begin(), point->nodes.end());
  }
  return *std::move(uses);
}

const CapturedFrees::Past* CapturedFrees::PastOf(Stream stream) {
  const std::optional<device::CapturePoint> point = device_.FindCapture(stream);
  if (!point.has_value()) return nullptr;
  Past& past = pasts_[Handle(stream)];
  if (past.capture == point->capture && Advance(past, *point)) return &past;
  past = Past();
  past.capture = point->capture;
  if (Advance(past, *point)) return &past;
  pasts_.erase(Handle(stream));
  return nullptr;
}

// From the point back to what is known. Where the stream stood before must be met on the way: else it was set
// elsewhere.
bool CapturedFrees::Advance(Past& past, const device::CapturePoint& point) {
  absl::flat_hash_set<std::uint64_t> ends(past.ends.begin(), past.ends.end());
  std::vector<std::uint64_t> open = point.nodes;
  while (!open.empty()) {
    const std::uint64_t node = open.back();
    open.pop_back();
    ends.erase(node);
    if (!past.nodes.insert(node).second) continue;
    const std::optional<std::vector<std::uint64_t>> before = device_.NodesBefore(node);
    if (!before.has_value()) return false;
    open.insert(open.end(), before->begin(), before->end());
  }
  past.ends = point.nodes;
  return ends.empty();
}

}  // namespace ashlar::core
