#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "analyzer/analyses/packing/packing.h"

namespace ashlar::analyses {
namespace {

struct Edge {
  std::int64_t time = 0;
  bool is_begin = false;  // ends first: lifetimes are half-open
  std::size_t buffer = 0;

  auto operator<=>(const Edge&) const = default;
};

absl::Status Overlap(std::size_t a, std::size_t b) {
  return absl::FailedPreconditionError(
      absl::StrCat("buffers ", std::min(a, b), " and ", std::max(a, b), " are alive together and overlap"));
}

}  // namespace

// Sweeps over time; those alive lie in a map by offset, so that a newcomer can only collide with its neighbours.
absl::Status CheckPacking(absl::Span<const Lifetime> buffers, absl::Span<const std::uint64_t> offsets,
                          std::uint64_t height) {
  if (buffers.size() != offsets.size()) {
    return absl::FailedPreconditionError(absl::StrCat(offsets.size(), " offsets for ", buffers.size(), " buffers"));
  }
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size > height || offsets[i] > height - buffers[i].size) {
      return absl::FailedPreconditionError(absl::StrCat("buffer ", i, " ends above the height"));
    }
    if (buffers[i].size == 0) continue;
    edges.push_back({buffers[i].lower, true, i});
    edges.push_back({buffers[i].upper, false, i});
  }
  std::sort(edges.begin(), edges.end());
  std::map<std::uint64_t, std::size_t> alive;
  for (const Edge& edge : edges) {
    const std::uint64_t begin = offsets[edge.buffer];
    if (!edge.is_begin) {
      alive.erase(begin);
      continue;
    }
    const auto above = alive.lower_bound(begin);
    if (above != alive.end() && above->first < begin + buffers[edge.buffer].size) {
      return Overlap(edge.buffer, above->second);
    }
    if (above != alive.begin()) {
      const auto below = std::prev(above);
      if (below->first + buffers[below->second].size > begin) return Overlap(edge.buffer, below->second);
    }
    alive.emplace(begin, edge.buffer);
  }
  return absl::OkStatus();
}

}  // namespace ashlar::analyses
