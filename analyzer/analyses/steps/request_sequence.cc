#include "analyzer/analyses/steps/request_sequence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace ashlar::analyses::period {
namespace {

constexpr std::size_t kLeastWidth = 4;
constexpr std::size_t kMostWidth = 48;

using Key = std::pair<std::uint64_t, trace::StackId>;

Key KeyOf(const trace::Event& event, Likeness likeness) {
  switch (likeness) {
    case Likeness::kSizeAndStack:
      return {event.size_bytes, event.stack};
    case Likeness::kStack:
      return {0, event.stack};
    case Likeness::kSize:
    case Likeness::kPersistentSize:
      return {event.size_bytes, trace::kNoStack};
  }
  return {};
}

// Keeps the tokens that occur three times or more, in both halves of the sequence and not only around its middle.
void KeepPersistent(std::vector<SequenceItem>& requests) {
  struct Seen {
    std::size_t count = 0, first = 0, last = 0;
  };
  std::vector<Seen> seen;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::uint32_t token = requests[i].token;
    if (token == seen.size()) seen.push_back({0, i, i});
    ++seen[token].count;
    seen[token].last = i;
  }
  const std::size_t low = requests.size() * 2 / 5;
  const std::size_t high = requests.size() * 3 / 5;
  const auto goes = [&](const SequenceItem& request) {
    const Seen& token = seen[request.token];
    return token.count < 3 || token.first > low || token.last < high;
  };
  requests.erase(std::remove_if(requests.begin(), requests.end(), goes), requests.end());
}

// n^2 pairs of positions, each equal over `width` tokens with the chance (sum of squared shares)^width.
std::size_t WidthFor(const std::vector<SequenceItem>& requests) {
  std::vector<double> counts;
  for (const SequenceItem& request : requests) {
    if (request.token >= counts.size()) counts.resize(request.token + 1, 0);
    ++counts[request.token];
  }
  const auto n = static_cast<double>(requests.size());
  double chance = 0;
  for (const double count : counts) chance += count / n * (count / n);
  if (chance >= 1) return kMostWidth;
  const double width = std::ceil(2 * std::log(n) / -std::log(chance));
  return static_cast<std::size_t>(std::clamp(width, static_cast<double>(kLeastWidth), static_cast<double>(kMostWidth)));
}

}  // namespace

Sequence MakeSequence(const timeline::Timeline& timeline, Likeness likeness) {
  // Blocks of the window are in the order of their allocations.
  const auto blocks = timeline.blocks();
  auto block = std::find_if(blocks.begin(), blocks.end(), [](const auto& b) { return b.alloc_event >= 0; });
  Sequence out;
  out.requests.reserve(static_cast<std::size_t>(blocks.end() - block));
  absl::flat_hash_map<Key, std::uint32_t> tokens;
  for (; block != blocks.end(); ++block) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(block->alloc_event)];
    const auto token = tokens.emplace(KeyOf(event, likeness), static_cast<std::uint32_t>(tokens.size())).first->second;
    out.requests.push_back({block->alloc_event, token, event.stack, block->free_requested_event});
  }
  out.all_requests = out.requests.size();
  if (likeness == Likeness::kPersistentSize) KeepPersistent(out.requests);
  return out;
}

Grams MakeGrams(const Sequence& sequence) {
  Grams out;
  const std::vector<SequenceItem>& requests = sequence.requests;
  if (requests.size() < 2 * kLeastWidth) return out;
  out.width = WidthFor(requests);
  if (requests.size() < 2 * out.width) return out;
  // A polynomial hash modulo 2^64 with an odd base over tokens spread by a multiplication: two different n-grams of a
  // recording meet with a chance of about n^2 / 2^64.
  constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;
  constexpr std::uint64_t kSpread = 0xD6E8FEB86659FD93;
  const auto spread = [](std::uint32_t token) {
    std::uint64_t x = (token + 1ULL) * kSpread;
    x ^= x >> 32;
    return x * kSpread;
  };
  std::uint64_t oldest_factor = 1;
  for (std::size_t i = 1; i < out.width; ++i) oldest_factor *= kBase;
  std::uint64_t hash = 0;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> ids;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i >= out.width) hash -= spread(requests[i - out.width].token) * oldest_factor;
    hash = hash * kBase + spread(requests[i].token);
    if (i + 1 < out.width) continue;
    const std::uint32_t id = ids.emplace(hash, static_cast<std::uint32_t>(ids.size())).first->second;
    if (id == out.positions.size()) out.positions.emplace_back();
    out.positions[id].push_back(static_cast<std::uint32_t>(out.ids.size()));
    out.ids.push_back(id);
  }
  return out;
}

}  // namespace ashlar::analyses::period
