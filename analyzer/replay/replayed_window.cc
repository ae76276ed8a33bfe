#include "analyzer/replay/replayed_window.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "allocator/core/inspect.h"
#include "allocator/policy/strategy.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/recorded_device.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::replay {
namespace {

using KnownBlock = policy::Heap::KnownBlock;
using timeline::StateSegment;

// The occupied blocks of a segment and the gaps between them.
std::vector<KnownBlock> BlocksOf(const StateSegment& segment) {
  std::vector<KnownBlock> out;
  std::uint64_t at = segment.address;
  const auto add_gap = [&out, &at](std::uint64_t end) {
    if (end > at) out.push_back({end - at, 0, policy::BlockUse::kFree});
  };
  for (const timeline::StateBlock& block : segment.blocks) {
    add_gap(block.address);
    out.push_back({block.size_bytes, block.requested_bytes.value_or(block.size_bytes), policy::BlockUse::kLive});
    at = block.End();
  }
  add_gap(segment.End());
  return out;
}

policy::Request LaneOf(const StateSegment& segment) {
  return {.bytes = 0, .stream = segment.stream, .pool = segment.pool};
}

// By address; only looked up.
using SegmentOrder = absl::flat_hash_map<std::uint64_t, std::size_t>;  // the how-manieth the segment was
using FreeAges = absl::flat_hash_map<std::uint64_t, std::uint64_t>;

FreeAges AgesOf(const trace::RecordedStart* recorded) {
  FreeAges out;
  if (recorded == nullptr) return out;
  for (const trace::SnapshotSegment& segment : recorded->segments) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (const std::optional<std::uint64_t> age = trace::FreeAgeOf(block); age.has_value()) out[block.address] = *age;
    }
  }
  return out;
}

SegmentOrder OrderOf(const trace::RecordedStart* recorded) {
  SegmentOrder out;
  if (recorded == nullptr) return out;
  for (const trace::SnapshotSegment& segment : recorded->segments) out.emplace(segment.address, out.size());
  return out;
}

class Restorer {
 public:
  Restorer(core::CachingAllocator& allocator, device::SimDevice& device, const trace::RecordedStart* recorded)
      : allocator_(allocator), device_(device), ages_(AgesOf(recorded)) {
    if (recorded != nullptr) large_pages_ = recorded->large_pages;
  }

  absl::Status RestoreOrdinary(const StateSegment& segment) {
    absl::Status status = device_.AdoptSegment(segment.address, segment.size_bytes);
    if (!status.ok()) return status;
    Keep(core::Reconstruction(allocator_)
             .RestoreSegment(LaneOf(segment), segment.is_small_pool, false, segment.address, BlocksOf(segment)));
    return absl::OkStatus();
  }

  absl::Status RestoreReservation(const Reservation& reservation) {
    std::vector<KnownBlock> blocks;
    std::uint64_t at = reservation.begin;
    const auto add_unmapped = [&blocks, &at](std::uint64_t end) {
      if (end > at) blocks.push_back({end - at, 0, policy::BlockUse::kUnmapped});
    };
    const LaneId& lane = reservation.lane;
    const std::uint64_t page_bytes = policy::PageBytes(lane.is_small_pool, allocator_.options());
    if (core::Inspection(allocator_).heap().segments().count(reservation.begin) > 0) {
      return absl::InvalidArgumentError(absl::StrCat("a segment and a reservation both begin at ", reservation.begin));
    }
    absl::Status status = device_.AdoptReservation(reservation.begin, reservation.end - reservation.begin);
    if (!status.ok()) return status;
    for (const StateSegment* range : reservation.ranges) {
      add_unmapped(range->address);
      const std::vector<KnownBlock> mapped = BlocksOf(*range);
      blocks.insert(blocks.end(), mapped.begin(), mapped.end());
      if (range->size_bytes > kMostMappedBytes || device_.used_bytes() > kMostMappedBytes - range->size_bytes) {
        return absl::InvalidArgumentError(absl::StrCat("the mapped range at ", range->address, " of ",
                                                       range->size_bytes, " bytes is more than any device has"));
      }
      status = device_.AdoptMapping(range->address, range->size_bytes, page_bytes);
      if (!status.ok()) return status;
      at = range->End();
    }
    add_unmapped(reservation.end);
    if (blocks.empty()) return absl::InvalidArgumentError("an empty reservation");
    const policy::Request lane_of{.bytes = 0, .stream = Stream{lane.stream}, .pool = lane.pool};
    Keep(core::Reconstruction(allocator_).RestoreSegment(lane_of, lane.is_small_pool, true, reservation.begin, blocks));
    return absl::OkStatus();
  }

  // The large pages of the reservation, which is restored.
  absl::Status RestorePages(const Reservation& reservation) {
    policy::Segment& segment = *core::Inspection(allocator_).heap().segments().at(reservation.begin);
    for (const trace::LargePage& page : large_pages_) {
      if (page.address < reservation.begin || page.address >= reservation.end) continue;
      const auto holds = [&page](const StateSegment* range) {
        return page.address >= range->address && page.address < range->End() &&
               page.size_bytes <= range->End() - page.address;
      };
      const std::uint64_t odd =
          (page.address - reservation.begin) % segment.page_bytes + page.size_bytes % segment.page_bytes;
      if (odd != 0 || std::none_of(reservation.ranges.begin(), reservation.ranges.end(), holds)) {
        return absl::InvalidArgumentError(absl::StrCat("the page at ", page.address, " of ", page.size_bytes,
                                                       " bytes is not in the memory that is mapped there"));
      }
      segment.large_pages.emplace(page.address, page.size_bytes);
    }
    return absl::OkStatus();
  }

  const std::map<std::uint64_t, core::Block*>& live() const { return live_; }

 private:
  void Keep(const std::vector<policy::Block*>& blocks) {
    for (policy::Block* block : blocks) {
      if (block->state == policy::BlockUse::kLive) live_[block->address] = block;
      if (block->state == policy::BlockUse::kFree && !block->IsSplit()) SetAge(*block);
    }
  }

  // The clock has just begun, so that what is older than it counts from before its 0.
  void SetAge(policy::Block& block) const {
    const auto age = ages_.find(block.address);
    if (age != ages_.end()) block.freed_at = block.segment->lane->pool->clock - age->second;
  }

  core::CachingAllocator& allocator_;
  device::SimDevice& device_;
  const FreeAges ages_;
  std::vector<trace::LargePage> large_pages_;
  std::map<std::uint64_t, core::Block*> live_;
};

}  // namespace

absl::StatusOr<std::vector<core::Block*>> RestoreState(const timeline::State& state, const Reservations& reservations,
                                                       core::CachingAllocator& allocator, device::SimDevice& device,
                                                       const trace::RecordedStart* recorded) {
  Restorer restorer(allocator, device, recorded);
  const SegmentOrder order = OrderOf(recorded);
  absl::Status status;
  std::vector<const StateSegment*> ordinary;
  for (const StateSegment& segment : state.segments) {
    if (!segment.is_expandable) ordinary.push_back(&segment);
  }
  const auto position = [&order](const StateSegment* segment) {
    const auto it = order.find(segment->address);
    return it == order.end() ? order.size() : it->second;
  };
  std::stable_sort(ordinary.begin(), ordinary.end(),
                   [&](const auto* a, const auto* b) { return position(a) < position(b); });
  for (const StateSegment* segment : ordinary) status.Update(restorer.RestoreOrdinary(*segment));
  for (const Reservation& reservation : reservations.all) {
    if (!reservation.lane.pool.IsDefault()) core::Reconstruction(allocator).TakePages(reservation.lane.pool);
    if (!reservation.ranges.empty() || reservation.stands_at_start) {
      status.Update(restorer.RestoreReservation(reservation));
      if (status.ok()) status = restorer.RestorePages(reservation);
    }
  }
  if (!status.ok()) return status;
  std::vector<core::Block*> out;
  for (const StateSegment& segment : state.segments) {
    for (const timeline::StateBlock& block : segment.blocks) {
      const auto it = restorer.live().find(block.address);
      if (it == restorer.live().end()) {
        return absl::InvalidArgumentError(absl::StrCat("no reservation holds the block at ", block.address));
      }
      out.push_back(it->second);
    }
  }
  return out;
}

namespace {

timeline::State StateOf(const core::CachingAllocator& allocator, int device) {
  timeline::State out{.device = device, .segments = {}};
  const core::Inspection inspection(allocator);
  inspection.WhileStill([&] {
    for (const trace::SnapshotSegment& segment : inspection.SegmentsNow()) {
      out.segments.push_back(timeline::StateSegmentOf(segment));
    }
  });
  return out;
}

}  // namespace

absl::StatusOr<std::vector<core::Block*>> RestoreWindow(const SnapshotProgram& program,
                                                        const Reservations& reservations,
                                                        core::CachingAllocator& allocator, RecordedDevice& device,
                                                        const trace::RecordedStart* recorded) {
  absl::StatusOr<std::vector<core::Block*>> start =
      RestoreState(program.start, reservations, allocator, device.simulated(), recorded);
  if (!start.ok()) return start.status();
  for (const auto& [address, segment] : core::Inspection(allocator).heap().segments()) device.AddBase(address);
  return start;
}

absl::StatusOr<WarmReplay> FinishWindow(const timeline::DeviceTrace& trace, const SnapshotProgram& program,
                                        RecordedDevice& device, Fidelity fidelity, core::CachingAllocator& allocator,
                                        DecisionSink& sink) {
  allocator.SetSink(nullptr);
  absl::StatusOr<timeline::Timeline> made = sink.Finish();
  if (!made.ok()) return made.status();
  const absl::Status final_state = timeline::CheckAgainstFinalState(StateOf(allocator, program.device), trace);
  fidelity.final_state_matches = final_state.ok();
  fidelity.final_state_difference = std::string(final_state.message());
  fidelity.tails_inferred = program.start.inferred_tails;
  fidelity.segment_addresses_used = device.addresses_used();
  return WarmReplay{std::move(fidelity), *std::move(made), allocator.stats(), device.simulated().calls()};
}

}  // namespace ashlar::replay
