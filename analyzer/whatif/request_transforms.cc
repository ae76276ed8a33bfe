#include "analyzer/whatif/request_transforms.h"

#include <algorithm>
#include <utility>

namespace ashlar::whatif {
namespace {

using timeline::EventIndex;
using trace::Op;
using trace::OpKind;
using trace::RequestTrace;

// A pool that no framework names.
constexpr PoolId kOwnPool{UINT64_MAX, UINT64_MAX};

bool Allocates(const Op& request) { return request.kind == OpKind::kAlloc && request.bytes > 0; }

bool Contains(absl::Span<const std::uint32_t> ids, std::uint32_t id) {
  return std::binary_search(ids.begin(), ids.end(), id);
}

template <typename Predicate>
RequestTrace Without(RequestTrace requests, Predicate is_dropped) {
  auto& list = requests.requests;
  list.erase(std::remove_if(list.begin(), list.end(), is_dropped), list.end());
  return requests;
}

}  // namespace

std::vector<std::uint32_t> RequestPlaces::IdsOf(absl::Span<const std::size_t> blocks) const {
  std::vector<std::uint32_t> out;
  for (const std::size_t block : blocks) out.push_back(ids[block]);
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<std::size_t> RequestPlaces::PositionFrom(EventIndex event) const {
  const auto at = std::lower_bound(events.begin(), events.end(), event);
  if (at == events.end()) return std::nullopt;
  return positions[static_cast<std::size_t>(at - events.begin())];
}

std::optional<RequestPlaces> PlaceRequests(const timeline::Timeline& timeline, const RequestTrace& requests) {
  const auto blocks = timeline.blocks();
  const auto failures = timeline.oom_events();
  RequestPlaces out;
  std::size_t block = 0;
  std::size_t failure = 0;
  for (std::size_t i = 0; i < requests.requests.size(); ++i) {
    const Op& request = requests.requests[i];
    if (!Allocates(request)) continue;
    const EventIndex next_block = block < blocks.size() ? EventIndex{blocks[block].alloc_event} : timeline::kNever;
    const EventIndex next_failure = failure < failures.size() ? failures[failure] : timeline::kNever;
    if (next_block == timeline::kNever && next_failure == timeline::kNever) return std::nullopt;
    out.events.push_back(std::min(next_block, next_failure));
    out.positions.push_back(i);
    if (next_block < next_failure) {
      out.ids.push_back(request.id);
      ++block;
    } else {
      ++failure;
    }
  }
  if (block != blocks.size() || failure != failures.size()) return std::nullopt;
  return out;
}

RequestTrace OnOneStream(RequestTrace requests) {
  for (Op& request : requests.requests) {
    if (request.kind == OpKind::kAlloc) request.stream = Stream{0};
  }
  return requests;
}

RequestTrace WithoutWaits(RequestTrace requests) {
  return Without(std::move(requests),
                 [](const Op& r) { return r.kind == OpKind::kRecordStream || r.kind == OpKind::kStreamSync; });
}

RequestTrace InDefaultPool(RequestTrace requests) {
  for (PoolId& pool : requests.pools) pool = PoolId{};
  return requests;
}

RequestTrace InOnePool(RequestTrace requests) {
  const auto is_private = [](PoolId pool) { return !pool.IsDefault(); };
  const auto first = std::find_if(requests.pools.begin(), requests.pools.end(), is_private);
  if (first != requests.pools.end()) std::replace_if(first, requests.pools.end(), is_private, PoolId(*first));
  return requests;
}

std::size_t PrivatePoolCount(const RequestTrace& requests) {
  return static_cast<std::size_t>(
      std::count_if(requests.pools.begin(), requests.pools.end(), [](PoolId pool) { return !pool.IsDefault(); }));
}

RequestTrace InPoolOfTheirOwn(RequestTrace requests, absl::Span<const std::uint32_t> ids) {
  const auto pool = static_cast<std::uint16_t>(requests.pools.size());
  requests.pools.push_back(kOwnPool);
  for (Op& request : requests.requests) {
    if (request.kind == OpKind::kAlloc && Contains(ids, request.id)) request.pool = pool;
  }
  return requests;
}

RequestTrace WithEmptyCacheAt(const RequestTrace& requests, absl::Span<const std::size_t> positions) {
  RequestTrace out = requests;
  out.requests.clear();
  auto next = positions.begin();
  for (std::size_t i = 0; i < requests.requests.size(); ++i) {
    for (; next != positions.end() && *next <= i; ++next) out.requests.push_back({.kind = OpKind::kEmptyCache});
    out.requests.push_back(requests.requests[i]);
  }
  return out;
}

RequestTrace AsleepIn(const RequestTrace& requests, absl::Span<const std::uint32_t> ids,
                      absl::Span<const RequestRange> ranges) {
  const RequestTrace apart = InPoolOfTheirOwn(requests, ids);
  const auto pool = static_cast<std::uint16_t>(apart.pools.size() - 1);
  RequestTrace out = apart;
  out.requests = {{.kind = OpKind::kTagPool, .pool = pool}};
  auto next = ranges.begin();
  bool is_asleep = false;
  for (std::size_t i = 0; i < apart.requests.size(); ++i) {
    if (next != ranges.end() && is_asleep && next->end == i) {
      out.requests.push_back({.kind = OpKind::kWake, .pool = pool});
      is_asleep = false;
      ++next;
    }
    if (next != ranges.end() && !is_asleep && next->begin == i) {
      out.requests.push_back({.kind = OpKind::kSleep, .pool = pool});
      is_asleep = true;
    }
    out.requests.push_back(apart.requests[i]);
  }
  return out;
}

}  // namespace ashlar::whatif
