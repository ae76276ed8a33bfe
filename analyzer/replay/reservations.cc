#include "analyzer/replay/reservations.h"

#include <algorithm>
#include <utility>

#include "allocator/policy/size_rule.h"
#include "allocator/policy/strategy.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::replay {
namespace {

using timeline::StateSegment;

// Room behind what is mapped where nothing limits it.
constexpr std::uint64_t kGrowthRoomBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kAddressEnd = std::uint64_t{1} << 62;  // of the simulated device

struct MappedRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  LaneId lane;
  const StateSegment* segment = nullptr;  // nullptr: mapped in the window
};

std::uint64_t Room(std::uint64_t begin, std::uint64_t size_bytes) {
  return begin < kAddressEnd ? begin + std::min(size_bytes, kAddressEnd - begin) : begin;
}

// What the window begins with and what it maps, by address.
std::vector<MappedRange> MappedRanges(const SnapshotProgram& program, const std::vector<trace::Event>& events,
                                      const policy::Options& options) {
  std::vector<MappedRange> out;
  for (const StateSegment& segment : program.start.segments) {
    if (!segment.is_expandable) continue;
    const LaneId lane{Handle(segment.stream), segment.is_small_pool, segment.pool};
    out.push_back({segment.address, segment.End(), lane, &segment});
  }
  for (std::size_t i = program.start_count; i < program.answers.size(); ++i) {
    const trace::Op& request = program.requests.requests[i];
    const RecordedAnswer& answer = program.answers[i];
    if (request.kind != trace::OpKind::kAlloc || request.bytes == 0 || request.bytes > policy::kMaxRequestBytes) {
      continue;
    }
    const LaneId lane{Handle(request.stream), policy::IsSmall(policy::RoundedBytes(request.bytes, options)),
                      program.requests.pools[request.pool]};
    for (std::int64_t e = answer.segments_from; e <= answer.event; ++e) {
      const trace::Event& event = events[static_cast<std::size_t>(e)];
      if (event.action != trace::Action::kSegmentMap || event.address > kAddressEnd) continue;
      out.push_back({event.address, Room(event.address, event.size_bytes), lane, nullptr});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return out;
}

bool BelongsTo(const Reservation& reservation, const MappedRange& range, std::uint64_t page_bytes,
               std::optional<std::uint64_t> size_bytes) {
  if (reservation.lane != range.lane || (range.begin - reservation.begin) % page_bytes != 0) return false;
  if (size_bytes.has_value() && range.end - reservation.begin > RoundUp(*size_bytes, page_bytes)) return false;
  // Ranges of the start state that touch would be one range.
  return range.segment == nullptr || reservation.ranges.empty() || reservation.ranges.back()->End() != range.begin;
}

struct RecordedReservation {
  trace::ReservedRange range;
  std::optional<LaneId> lane;  // of what it holds in the end; nullopt: it was gone
};

std::vector<RecordedReservation> RecordedReservations(const timeline::DeviceTrace& trace) {
  std::vector<RecordedReservation> out;
  if (trace.recording == nullptr) return out;
  for (const trace::ReservedRange& range : trace.recording->reservations) {
    RecordedReservation& reservation = out.emplace_back(RecordedReservation{range, std::nullopt});
    for (const trace::SnapshotSegment* segment : trace.segments) {
      if (!segment->is_expandable || segment->address < range.address) continue;
      if (segment->address - range.address >= range.size_bytes) continue;
      reservation.lane = LaneId{Handle(segment->stream), segment->is_small_pool, segment->pool};
    }
  }
  return out;
}

// Where the recorded reservation begins that holds the range; the range itself where there is none.
std::uint64_t BeginOf(const MappedRange& range, const std::vector<RecordedReservation>& recorded) {
  std::uint64_t begin = range.begin;
  for (const RecordedReservation& reservation : recorded) {
    const std::uint64_t address = reservation.range.address;
    if (range.begin < address || range.begin - address >= reservation.range.size_bytes) continue;
    if (reservation.lane == range.lane) return address;
    if (!reservation.lane.has_value()) begin = address;
  }
  return begin;
}

// The size every reservation has, where the device's memory is known (policy: 9/8 of it, unless the settings say).
std::optional<std::uint64_t> KnownSize(const policy::Options& options, std::optional<std::uint64_t> total_bytes) {
  if (!total_bytes.has_value()) return std::nullopt;
  std::uint64_t bytes = *total_bytes + *total_bytes / 8;
  const policy::ExpandableReserve& reserve = options.expandable_reserve;
  if (reserve.bytes.has_value()) bytes = std::min(bytes, *reserve.bytes);
  if (reserve.fraction_of_total.has_value()) {
    const double wanted = *reserve.fraction_of_total * static_cast<double>(*total_bytes);
    if (wanted < static_cast<double>(bytes)) bytes = static_cast<std::uint64_t>(wanted);
  }
  return bytes;
}

// As the recording names them, in its order.
Reservations KnownReservations(const trace::RecordedStart& recorded, const timeline::State& start,
                               std::uint64_t size_bytes) {
  Reservations out;
  out.size_bytes = size_bytes;
  for (const trace::ReservedRange& range : recorded.reservations) {
    if (!range.lane.has_value() || range.address > kAddressEnd) continue;
    Reservation& reservation = out.all.emplace_back();
    reservation.lane = {Handle(range.lane->stream), range.lane->is_small_pool, range.lane->pool};
    reservation.begin = range.address;
    reservation.end = Room(range.address, range.size_bytes);
    reservation.stands_at_start = true;
    for (const StateSegment& segment : start.segments) {
      const bool is_in = segment.address >= reservation.begin && segment.address < reservation.end;
      if (segment.is_expandable && is_in) reservation.ranges.push_back(&segment);
    }
  }
  return out;
}

// Mapped ranges of neighbouring reservations are one in a state that was rewound to.
void CutAtReservations(const std::vector<trace::ReservedRange>& reservations, timeline::StartState& start) {
  std::vector<timeline::StateSegment> cut;
  for (timeline::StateSegment& segment : start.segments) {
    timeline::StateSegment rest = std::move(segment);
    for (const trace::ReservedRange& range : reservations) {
      const bool begins_inside = range.address > rest.address && range.address < rest.End();
      if (!rest.is_expandable || !begins_inside) continue;
      timeline::StateSegment low = rest;
      low.size_bytes = range.address - rest.address;
      rest.size_bytes -= low.size_bytes;
      rest.address = range.address;
      const auto is_high = [&](const timeline::StateBlock& block) { return block.address >= range.address; };
      low.blocks.erase(std::find_if(low.blocks.begin(), low.blocks.end(), is_high), low.blocks.end());
      rest.blocks.erase(rest.blocks.begin(), std::find_if(rest.blocks.begin(), rest.blocks.end(), is_high));
      cut.push_back(std::move(low));
    }
    cut.push_back(std::move(rest));
  }
  for (timeline::StateSegment& segment : cut) {
    for (const trace::ReservedRange& range : reservations) {
      if (!segment.is_expandable || !range.lane.has_value()) continue;
      if (segment.address < range.address || segment.address - range.address >= range.size_bytes) continue;
      segment.stream = range.lane->stream;
      segment.is_small_pool = range.lane->is_small_pool;
      segment.pool = range.lane->pool;
    }
  }
  start.segments = std::move(cut);
}

}  // namespace

timeline::StartState FirstState(const timeline::DeviceTrace& trace, timeline::StartState rewound) {
  const trace::RecordedStart* recorded = trace.start;
  if (recorded == nullptr) return rewound;
  if (!recorded->has_segments) {
    std::vector<trace::ReservedRange> ascending = recorded->reservations;
    std::sort(ascending.begin(), ascending.end());
    CutAtReservations(ascending, rewound);
    return rewound;
  }
  timeline::StartState out;
  out.device = trace.device;
  for (const trace::SnapshotSegment& segment : recorded->segments) {
    if (segment.device == trace.device) out.segments.push_back(timeline::StateSegmentOf(segment));
  }
  std::sort(out.segments.begin(), out.segments.end(),
            [](const timeline::StateSegment& a, const timeline::StateSegment& b) { return a.address < b.address; });
  return out;
}

Reservations FindReservations(const timeline::DeviceTrace& trace, const SnapshotProgram& program,
                              const policy::Options& options, std::optional<std::uint64_t> device_total_bytes) {
  Reservations out;
  const std::vector<RecordedReservation> recorded = RecordedReservations(trace);
  const std::vector<trace::Event>& events = trace.events;
  const std::optional<std::uint64_t> known = KnownSize(options, device_total_bytes);
  const trace::RecordedStart* start = trace.start;
  if (start != nullptr && start->has_reservations && known.has_value()) {
    return KnownReservations(*start, program.start, *known);
  }
  for (const MappedRange& range : MappedRanges(program, events, options)) {
    const std::uint64_t page_bytes = policy::PageBytes(range.lane.is_small_pool, options);
    if (out.all.empty() || !BelongsTo(out.all.back(), range, page_bytes, known)) {
      const std::uint64_t begin = BeginOf(range, recorded);
      const bool is_free = out.all.empty() || out.all.back().end <= begin;  // else it came later, in another's place
      out.all.push_back({.lane = range.lane, .begin = is_free ? begin : range.begin});
    }
    Reservation& reservation = out.all.back();
    reservation.end = std::max(reservation.end, range.end);
    if (range.segment != nullptr) reservation.ranges.push_back(range.segment);
  }
  out.size_bytes = kGrowthRoomBytes;
  for (std::size_t i = 0; i < out.all.size(); ++i) {
    Reservation& reservation = out.all[i];
    const std::uint64_t page_bytes = policy::PageBytes(reservation.lane.is_small_pool, options);
    const std::uint64_t wanted = known.has_value() ? RoundUp(*known, page_bytes) : kGrowthRoomBytes;
    std::uint64_t end = std::max(reservation.end, Room(reservation.begin, wanted));
    if (i + 1 < out.all.size()) {
      end = std::min(end, out.all[i + 1].begin);
      out.size_bytes = std::min(out.size_bytes, out.all[i + 1].begin - reservation.begin);
    }
    reservation.end = std::max(end, reservation.end);
  }
  if (known.has_value()) {
    out.size_bytes = *known;
  } else {
    out.size_bytes = RoundDown(out.size_bytes, policy::PageBytes(/*is_small=*/false, options));
  }
  return out;
}

policy::Options WithReserve(policy::Options options, const Reservations& reservations) {
  options.expandable_reserve = {};
  options.expandable_reserve.bytes = reservations.size_bytes;
  return options;
}

}  // namespace ashlar::replay
