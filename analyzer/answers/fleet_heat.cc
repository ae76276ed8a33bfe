// The part of fleet.h that lays the ranks' curves on one axis.
#include <algorithm>
#include <limits>
#include <utility>

#include "analyzer/answers/fleet.h"

namespace ashlar::answers {
namespace {

constexpr std::uint64_t kWholeShare = 1000;

const RankCurve* CurveOf(const FleetMember& member) {
  return member.summary.has_value() && member.summary->curve.has_value() ? &*member.summary->curve : nullptr;
}

std::vector<const RankCurve*> CurvesOf(const std::vector<FleetMember>& members) {
  std::vector<const RankCurve*> out;
  for (const FleetMember& member : members) {
    if (const RankCurve* curve = CurveOf(member)) out.push_back(curve);
  }
  return out;
}

// The device's memory where all that know it have the same; else the greatest that was reserved.
std::uint64_t FullBytes(const std::vector<FleetMember>& members) {
  std::uint64_t reserved = 1;
  std::optional<std::uint64_t> total;
  bool is_alike = true;
  for (const FleetMember& member : members) {
    if (!member.summary.has_value()) continue;
    reserved = std::max(reserved, member.summary->peak_reserved_bytes.value_or(0));
    if (!member.summary->total_bytes.has_value()) continue;
    if (total.has_value() && *total != *member.summary->total_bytes) is_alike = false;
    total = member.summary->total_bytes;
  }
  return is_alike && total.value_or(0) >= reserved ? *total : reserved;
}

std::uint16_t ShareOf(std::uint64_t bytes, std::uint64_t full) {
  const std::uint64_t part = bytes / full * kWholeShare + (bytes % full * kWholeShare + full - 1) / full;
  return static_cast<std::uint16_t>(std::min(part, kWholeShare));
}

// Where a bin's edge lies: begin + i / kFleetBins of the length.
std::int64_t Edge(std::int64_t begin, std::int64_t end, std::size_t i) {
  return begin + static_cast<std::int64_t>(static_cast<double>(end - begin) * static_cast<double>(i) /
                                           static_cast<double>(kFleetBins));
}

// Of the axis' bin [begin, end): the greatest value of the curve's bins that it meets; nullopt: outside the curve.
std::optional<std::uint64_t> MostWithin(const RankCurve& curve, const std::vector<std::uint64_t>& values,
                                        std::int64_t shift, std::int64_t begin, std::int64_t end) {
  std::optional<std::uint64_t> out;
  if (end <= curve.begin + shift || begin >= curve.end + shift) return out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t from = Edge(curve.begin, curve.end, i) + shift;
    const std::int64_t to = std::max(Edge(curve.begin, curve.end, i + 1) + shift, from + 1);
    if (from < std::max(end, begin + 1) && begin < to) out = std::max(out.value_or(0), values[i]);
  }
  return out;
}

class HeatMaker {
 public:
  HeatMaker(const std::vector<FleetMember>& members, FleetClock clock) : members_(members), clock_(clock) {
    out_.full_bytes = FullBytes(members);
    if (clock == FleetClock::kEvents) return;
    out_.begin_us = clock == FleetClock::kOwn ? 0 : std::numeric_limits<std::int64_t>::max();
    for (const RankCurve* curve : CurvesOf(members)) {
      if (clock == FleetClock::kCommon) out_.begin_us = std::min(out_.begin_us, curve->begin);
    }
    out_.end_us = out_.begin_us + 1;
    for (const RankCurve* curve : CurvesOf(members)) {
      out_.end_us = std::max(out_.end_us, curve->end + ShiftOf(*curve));
    }
  }

  FleetHeat Make() {
    for (Member member = 0; member < members_.size(); ++member) {
      const RankCurve* curve = CurveOf(members_[member]);
      if (curve == nullptr) continue;
      out_.rows.push_back({member, Row(*curve, curve->allocated_bytes), Row(*curve, curve->reserved_bytes)});
    }
    return std::move(out_);
  }

 private:
  std::int64_t ShiftOf(const RankCurve& curve) const { return clock_ == FleetClock::kOwn ? -curve.begin : 0; }

  std::vector<std::optional<std::uint16_t>> Row(const RankCurve& curve,
                                                const std::vector<std::uint64_t>& values) const {
    std::vector<std::optional<std::uint16_t>> out;
    for (std::size_t i = 0; i < kFleetBins && i < values.size(); ++i) {
      std::optional<std::uint64_t> most = values[i];
      if (clock_ != FleetClock::kEvents) {
        most = MostWithin(curve, values, ShiftOf(curve), Edge(out_.begin_us, out_.end_us, i),
                          Edge(out_.begin_us, out_.end_us, i + 1));
      }
      out.push_back(most.has_value() ? std::optional(ShareOf(*most, out_.full_bytes)) : std::nullopt);
    }
    return out;
  }

  const std::vector<FleetMember>& members_;
  const FleetClock clock_;
  FleetHeat out_;
};

}  // namespace

FleetClock ClockOf(const std::vector<FleetMember>& members) {
  const std::vector<const RankCurve*> curves = CurvesOf(members);
  std::vector<std::uint64_t> lengths;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const RankCurve* curve : curves) {
    if (!curve->is_time) return FleetClock::kEvents;
    lengths.push_back(static_cast<std::uint64_t>(curve->end - curve->begin));
    first = std::min(first, curve->begin);
    last = std::max(last, curve->begin);
  }
  if (curves.empty()) return FleetClock::kEvents;
  // Ranks of one job begin together: within the length of a usual window.
  const std::uint64_t apart = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  return apart <= MedianOf(std::move(lengths)) ? FleetClock::kCommon : FleetClock::kOwn;
}

FleetHeat MakeHeat(const std::vector<FleetMember>& members, FleetClock clock) {
  return HeatMaker(members, clock).Make();
}

}  // namespace ashlar::answers
