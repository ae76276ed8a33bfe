#include "allocator/trace/state_after.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/torch_sizes.h"

namespace ashlar::trace {
// One device.
class DevicePicture {
  // A segment as it is worked on: its blocks stand elsewhere.
  struct Range {
    SnapshotSegment segment;
    bool is_size_class_known = true;

    std::uint64_t End() const { return segment.address + segment.size_bytes; }
  };

 public:
  void Load(const SnapshotSegment& segment) {
    Range range{segment};
    range.segment.blocks.clear();
    ranges_[segment.address] = std::move(range);
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state != BlockState::kFree) blocks_[block.address] = block;
    }
  }

  // nullptr, or why it cannot be.
  const char* Apply(const Event& event) {
    switch (event.action) {
      case Action::kAlloc:
        return Allocate(event);
      case Action::kFreeRequested:
        return RequestFree(event);
      case Action::kFreeCompleted:
        return blocks_.erase(event.address) == 1 ? nullptr : "there is no such block";
      case Action::kSegmentAlloc:
        return AddRange(event, /*is_expandable=*/false);
      case Action::kSegmentMap:
        return AddRange(event, /*is_expandable=*/true);
      case Action::kSegmentFree:
      case Action::kSegmentUnmap:
        return Remove(event);
      default:
        return nullptr;
    }
  }

  void Finish(std::vector<SnapshotSegment>& out) {
    auto block = blocks_.begin();
    for (auto& [address, range] : ranges_) {
      SnapshotSegment& segment = out.emplace_back(std::move(range.segment));
      std::uint64_t at = address;
      const auto add_gap = [&](std::uint64_t end) {
        if (end > at) segment.blocks.push_back({.address = at, .size_bytes = end - at, .requested_bytes = {}});
      };
      for (; block != blocks_.end() && block->first < range.End(); ++block) {
        add_gap(block->first);
        segment.blocks.push_back(block->second);
        at = block->first + block->second.size_bytes;
      }
      add_gap(address + segment.size_bytes);
    }
  }

 private:
  using Ranges = std::map<std::uint64_t, Range>;

  Ranges::iterator RangeAround(std::uint64_t address, std::uint64_t size_bytes) {
    auto it = ranges_.upper_bound(address);
    if (it == ranges_.begin()) return ranges_.end();
    --it;
    const std::uint64_t offset = address - it->first;
    const std::uint64_t whole = it->second.segment.size_bytes;
    return offset < whole && size_bytes <= whole - offset ? it : ranges_.end();
  }

  bool IsVacant(std::uint64_t address, std::uint64_t size_bytes) const {
    const auto next = blocks_.lower_bound(address);
    if (next != blocks_.end() && next->first - address < size_bytes) return false;
    if (next == blocks_.begin()) return true;
    const SnapshotBlock& before = std::prev(next)->second;
    return before.address + before.size_bytes <= address;
  }

  const char* Allocate(const Event& event) {
    const std::uint64_t size_bytes = event.block_size_bytes;
    const auto range = RangeAround(event.address, size_bytes);
    if (size_bytes == 0 || range == ranges_.end()) return "there is no segment around it";
    if (!IsVacant(event.address, size_bytes)) return "another block is there";
    if (!range->second.is_size_class_known) {
      range->second.segment.is_small_pool = event.size_bytes <= kSmallMaxBytes;
      range->second.is_size_class_known = true;
    }
    blocks_[event.address] = {event.address, size_bytes, event.size_bytes, BlockState::kLive, event.stack};
    return nullptr;
  }

  const char* RequestFree(const Event& event) {
    const auto block = blocks_.find(event.address);
    if (block == blocks_.end() || block->second.state != BlockState::kLive) return "there is no such live block";
    block->second.state = BlockState::kPending;
    return nullptr;
  }

  const char* AddRange(const Event& event, bool is_expandable) {
    if (event.size_bytes == 0 || event.address + event.size_bytes < event.address) return "it is no range";
    auto next = ranges_.lower_bound(event.address);
    if (next != ranges_.end() && next->first - event.address < event.size_bytes) return "another segment is there";
    if (next != ranges_.begin() && std::prev(next)->second.End() > event.address) return "another segment is there";
    Range range;
    range.segment.address = event.address;
    range.segment.size_bytes = event.size_bytes;
    range.segment.stream = event.stream;
    range.segment.pool = event.pool.value_or(PoolId{});
    range.segment.is_expandable = is_expandable;
    range.segment.stack = event.stack;
    range.segment.is_small_pool =
        is_expandable ? event.size_bytes % kDefaultLargeSegmentBytes != 0 : event.size_bytes <= kSmallSegmentBytes;
    range.is_size_class_known = !is_expandable;
    auto at = ranges_.emplace(event.address, std::move(range)).first;
    if (!is_expandable) return nullptr;
    if (at != ranges_.begin() && Join(std::prev(at), at)) at = std::prev(ranges_.upper_bound(event.address));
    if (std::next(at) != ranges_.end()) Join(at, std::next(at));
    return nullptr;
  }

  // `high` becomes part of `low` where one mapped range continues the other.
  bool Join(Ranges::iterator low, Ranges::iterator high) {
    Range& a = low->second;
    Range& b = high->second;
    const bool are_alike = a.segment.is_expandable && b.segment.is_expandable && a.segment.stream == b.segment.stream &&
                           a.segment.pool == b.segment.pool;
    const bool may_differ = a.is_size_class_known && b.is_size_class_known;
    if (!are_alike || a.End() != b.segment.address) return false;
    if (may_differ && a.segment.is_small_pool != b.segment.is_small_pool) return false;
    if (b.is_size_class_known) a.segment.is_small_pool = b.segment.is_small_pool;
    a.is_size_class_known = a.is_size_class_known || b.is_size_class_known;
    a.segment.size_bytes += b.segment.size_bytes;
    ranges_.erase(high);
    return true;
  }

  const char* Remove(const Event& event) {
    const auto it = RangeAround(event.address, event.size_bytes);
    if (it == ranges_.end() || event.size_bytes == 0) return "there is no such segment";
    if (!IsVacant(event.address, event.size_bytes)) return "a block is in it";
    const Range whole = it->second;
    const bool is_whole = whole.segment.address == event.address && whole.segment.size_bytes == event.size_bytes;
    if (event.action == Action::kSegmentFree && !is_whole) return "the segment has another size";
    ranges_.erase(it);
    AddPart(whole, whole.segment.address, event.address);
    AddPart(whole, event.address + event.size_bytes, whole.End());
    return nullptr;
  }

  void AddPart(const Range& whole, std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    Range part = whole;
    part.segment.address = begin;
    part.segment.size_bytes = end - begin;
    ranges_.emplace(begin, std::move(part));
  }

  Ranges ranges_;                                  // by address
  std::map<std::uint64_t, SnapshotBlock> blocks_;  // by address; live and pending ones
};

absl::Status CheckSegments(std::vector<SnapshotSegment>& segments) {
  std::stable_sort(segments.begin(), segments.end(), [](const SnapshotSegment& a, const SnapshotSegment& b) {
    return std::pair(a.device, a.address) < std::pair(b.device, b.address);
  });
  const SnapshotSegment* last = nullptr;
  for (const SnapshotSegment& segment : segments) {
    std::uint64_t at = segment.address;
    for (const SnapshotBlock& block : segment.blocks) at += block.size_bytes;
    const bool overlaps =
        last != nullptr && last->device == segment.device && last->address + last->size_bytes > segment.address;
    if (overlaps || segment.address + segment.size_bytes < segment.address ||
        (!segment.blocks.empty() && at != segment.address + segment.size_bytes)) {
      return absl::DataLossError(absl::StrCat("device ", segment.device, ": the recorded segment at 0x",
                                              absl::Hex(segment.address), " of ", segment.size_bytes,
                                              " bytes is not covered by its blocks, or overlaps another"));
    }
    last = &segment;
  }
  return absl::OkStatus();
}

StateSteps::StateSteps(const std::vector<SnapshotSegment>& start) {
  for (const SnapshotSegment& segment : start) {
    std::unique_ptr<DevicePicture>& picture = pictures_[segment.device];
    if (picture == nullptr) picture = std::make_unique<DevicePicture>();
    picture->Load(segment);
  }
}

StateSteps::~StateSteps() = default;
StateSteps::StateSteps(StateSteps&&) noexcept = default;
StateSteps& StateSteps::operator=(StateSteps&&) noexcept = default;

absl::Status StateSteps::Apply(std::size_t device, absl::Span<const Event> events, std::uint64_t first) {
  std::unique_ptr<DevicePicture>& picture = pictures_[static_cast<int>(device)];
  if (picture == nullptr) picture = std::make_unique<DevicePicture>();
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const char* wrong = picture->Apply(event);
    if (wrong == nullptr) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("device ", device, ", event ", first + i, " (", ActionName(event.action), " of ", event.size_bytes,
                     " B at 0x", absl::Hex(event.address), "): ", wrong, "; the recording contradicts itself"));
  }
  return absl::OkStatus();
}

void StateSteps::Finish(std::vector<SnapshotSegment>& out) {
  out.clear();
  for (auto& [device, picture] : pictures_) {
    const std::size_t first = out.size();
    picture->Finish(out);
    for (std::size_t i = first; i < out.size(); ++i) out[i].device = device;
  }
  pictures_.clear();
}

absl::Status StateAfter(const std::vector<SnapshotSegment>& start, absl::Span<const EventList> traces,
                        std::vector<SnapshotSegment>& out) {
  StateSteps steps(start);
  for (std::size_t device = 0; device < traces.size(); ++device) {
    if (absl::Status status = steps.Apply(device, traces[device], 0); !status.ok()) return status;
  }
  steps.Finish(out);
  return absl::OkStatus();
}

void FillBlockStacks(absl::Span<const EventList> traces, std::vector<SnapshotSegment>& segments) {
  std::vector<absl::flat_hash_map<std::uint64_t, StackId>> made(traces.size());
  for (std::size_t device = 0; device < traces.size(); ++device) {
    for (const Event& event : traces[device]) {
      if (event.action == Action::kAlloc) made[device][event.address] = event.stack;
    }
  }
  for (SnapshotSegment& segment : segments) {
    if (static_cast<std::size_t>(segment.device) >= made.size()) continue;
    for (SnapshotBlock& block : segment.blocks) {
      const auto& stacks = made[static_cast<std::size_t>(segment.device)];
      const auto it = stacks.find(block.address);
      if (block.state != BlockState::kFree && block.stack == kNoStack && it != stacks.end()) block.stack = it->second;
    }
  }
}

}  // namespace ashlar::trace
