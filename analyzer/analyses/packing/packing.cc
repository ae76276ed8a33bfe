#include "analyzer/analyses/packing/packing.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/analyses/packing/packing_greedy.h"
#include "analyzer/analyses/packing/packing_search.h"

namespace ashlar::analyses {
namespace {

using Index = std::uint32_t;

constexpr std::size_t kMostSearched = 3'000;           // buffers: the search looks at all pairs
constexpr std::size_t kMostPackingLevels = 64;         // of parts within parts
constexpr std::uint64_t kMaxGreedyPairs = 60'000'000;  // a few seconds
constexpr int kMostTargetsTried = 4;

// Buffers that can be packed by themselves, on top of `base`.
struct PackingPart {
  std::vector<Index> buffers;
  std::uint64_t base = 0;
  std::size_t level = 0;
};

// Splits a problem until nothing splits any more: what lives as long as everything else goes to the bottom (whatever
// lies below such a buffer can as well lie above it), and what is then never alive together is packed separately.
class Splitter {
 public:
  Splitter(absl::Span<const Lifetime> buffers, std::vector<std::uint64_t>& offsets)
      : buffers_(buffers), offsets_(offsets) {}

  std::vector<PackingPart> Run() {
    PackingPart all;
    for (Index i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].size > 0) all.buffers.push_back(i);
    }
    std::stable_sort(all.buffers.begin(), all.buffers.end(),
                     [this](Index a, Index b) { return buffers_[a].lower < buffers_[b].lower; });
    std::vector<PackingPart> todo = Components(all), done;
    while (!todo.empty()) {
      PackingPart part = std::move(todo.back());
      todo.pop_back();
      if (part.level < kMostPackingLevels && Lower(part)) {
        for (PackingPart& smaller : Components(part)) todo.push_back(std::move(smaller));
      } else if (!part.buffers.empty()) {
        done.push_back(std::move(part));
      }
    }
    return done;
  }

 private:
  // Places what spans the whole part; false where nothing does.
  bool Lower(PackingPart& part) {
    std::int64_t begin = INT64_MAX, end = INT64_MIN;
    for (const Index index : part.buffers) {
      begin = std::min(begin, buffers_[index].lower);
      end = std::max(end, buffers_[index].upper);
    }
    const std::size_t before = part.buffers.size();
    std::erase_if(part.buffers, [&](Index index) {
      if (buffers_[index].lower != begin || buffers_[index].upper != end) return false;
      offsets_[index] = part.base;
      part.base += buffers_[index].size;
      return true;
    });
    return part.buffers.size() < before;
  }

  // By lower end, as they are sorted.
  std::vector<PackingPart> Components(const PackingPart& part) const {
    std::vector<PackingPart> out;
    std::int64_t end = INT64_MIN;
    for (const Index index : part.buffers) {
      if (out.empty() || buffers_[index].lower >= end) out.push_back({{}, part.base, part.level + 1});
      end = std::max(end, buffers_[index].upper);
      out.back().buffers.push_back(index);
    }
    return out;
  }

  absl::Span<const Lifetime> buffers_;
  std::vector<std::uint64_t>& offsets_;
};

void Keep(GreedyPacking packing, GreedyPacking& best) {
  if (packing.height < best.height) best = std::move(packing);
}

// First the target itself, then halfway to the best that is known.
void SearchToward(absl::Span<const Lifetime> buffers, std::uint64_t target, std::uint64_t max_steps,
                  std::uint64_t& steps, GreedyPacking& best) {
  if (buffers.size() > kMostSearched) return;
  PackingSearch search(buffers);
  for (int i = 0; i < kMostTargetsTried && target < best.height && max_steps > 0; ++i) {
    const std::uint64_t share = std::max<std::uint64_t>(max_steps / 2, 1);
    std::uint64_t spent = 0;
    if (search.Run(target, share, spent) == SearchEnd::kFound) {
      best = {search.offsets(), 0};
      for (std::size_t b = 0; b < buffers.size(); ++b) {
        best.height = std::max(best.height, best.offsets[b] + buffers[b].size);
      }
      steps += spent;
      return;
    }
    steps += spent;
    max_steps -= std::min(max_steps, spent);
    target += std::max<std::uint64_t>((best.height - target) / 2, 1);
  }
}

}  // namespace

std::uint64_t LiveLowerBound(absl::Span<const Lifetime> buffers) {
  std::vector<std::pair<std::int64_t, std::uint64_t>> begins, ends;
  for (const Lifetime& buffer : buffers) {
    begins.emplace_back(buffer.lower, buffer.size);
    ends.emplace_back(buffer.upper, buffer.size);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::uint64_t live = 0, most = 0;
  std::size_t ended = 0;
  for (const auto& [time, size] : begins) {
    for (; ends[ended].first <= time; ++ended) live -= ends[ended].second;
    live += size;
    most = std::max(most, live);
  }
  return most;
}

Packing Pack(absl::Span<const Lifetime> buffers, const PackOptions& options) {
  Packing out;
  out.offsets.resize(buffers.size());
  out.lower_bound = LiveLowerBound(buffers);
  const std::uint64_t target = std::max(out.lower_bound, options.target_height.value_or(0));
  std::vector<PackingPart> parts = Splitter(buffers, out.offsets).Run();
  // The largest first: it decides.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const PackingPart& a, const PackingPart& b) { return a.buffers.size() > b.buffers.size(); });
  for (const PackingPart& part : parts) {
    std::vector<Lifetime> own;
    for (const Index index : part.buffers) own.push_back(buffers[index]);
    // No part needs to be lower than the highest that is known to be needed.
    const std::uint64_t own_target = std::max(target, out.height) - part.base;
    GreedyPacking best = PackInTimeOrder(own);
    if (best.height > own_target) Keep(PackByPriority(own, own_target, kMaxGreedyPairs), best);
    if (best.height > own_target) {
      SearchToward(own, own_target, options.max_steps - std::min(options.max_steps, out.steps), out.steps, best);
    }
    for (std::size_t i = 0; i < own.size(); ++i) out.offsets[part.buffers[i]] = part.base + best.offsets[i];
    out.height = std::max(out.height, part.base + best.height);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) out.height = std::max(out.height, out.offsets[i] + buffers[i].size);
  return out;
}

namespace {

struct LifetimeEdge {
  std::int64_t time = 0;
  bool is_begin = false;  // ends first: lifetimes are half-open
  std::size_t buffer = 0;

  auto operator<=>(const LifetimeEdge&) const = default;
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
  std::vector<LifetimeEdge> edges;
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
  for (const LifetimeEdge& edge : edges) {
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
