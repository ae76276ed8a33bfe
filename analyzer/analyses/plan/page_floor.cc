#include "analyzer/analyses/plan/page_floor.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "allocator/base/units.h"

namespace ashlar::analyses {
namespace {

struct Change {
  std::int64_t at = 0;
  bool is_begin = false;  // what ends at a time ends before anything begins then
  std::size_t lane = 0;
  std::uint64_t bytes = 0;
};

std::vector<Change> ChangesOf(absl::Span<const LaneRequests> lanes) {
  std::vector<Change> out;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    for (const LaneRequest& request : lanes[lane].requests) {
      out.push_back({request.begin, true, lane, request.size_bytes});
      out.push_back({request.end, false, lane, request.size_bytes});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Change& a, const Change& b) { return a.at != b.at ? a.at < b.at : a.is_begin < b.is_begin; });
  return out;
}

}  // namespace

std::uint64_t PageFloor(absl::Span<const LaneRequests> lanes, std::uint64_t page_bytes) {
  std::vector<std::uint64_t> live(lanes.size());
  std::uint64_t sum = 0, most = 0;
  for (const Change& change : ChangesOf(lanes)) {
    std::uint64_t& bytes = live[change.lane];
    sum -= RoundUp(bytes, page_bytes);
    bytes = change.is_begin ? bytes + change.bytes : bytes - change.bytes;
    sum += RoundUp(bytes, page_bytes);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace ashlar::analyses
