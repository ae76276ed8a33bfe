#include "analyzer/exports/slice_lanes.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ashlar::exports {
namespace {

// Ends of the slices that are open on a lane, outermost first.
using OpenEnds = std::vector<timeline::EventIndex>;

bool TakeRoom(const LaneSlice& slice, bool may_nest, OpenEnds& open) {
  while (!open.empty() && open.back() <= slice.begin) open.pop_back();
  if (!open.empty() && (!may_nest || slice.end > open.back())) return false;
  open.push_back(slice.end);
  return true;
}

}  // namespace

std::vector<std::size_t> LanesOf(absl::Span<const LaneSlice> slices, bool may_nest) {
  std::vector<std::size_t> order(slices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(slices[a].begin, -slices[a].end) < std::pair(slices[b].begin, -slices[b].end);
  });
  std::vector<std::size_t> out(slices.size());
  std::vector<OpenEnds> lanes;
  for (const std::size_t i : order) {
    std::size_t lane = 0;
    while (lane < lanes.size() && !TakeRoom(slices[i], may_nest, lanes[lane])) ++lane;
    if (lane == lanes.size()) lanes.push_back({slices[i].end});
    out[i] = lane;
  }
  return out;
}

}  // namespace ashlar::exports
