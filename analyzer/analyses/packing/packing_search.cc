#include "analyzer/analyses/packing/packing_search.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "allocator/base/rng.h"

namespace ashlar::analyses {
namespace {

// The first attempts' limits, per buffer; each round of all orders doubles it.
constexpr std::uint64_t kFirstStepsPerBuffer = 20'000;
// Every round tries the fixed orders, then a shaken one: every fourth buffer or so swapped with one of the next few.
constexpr std::uint64_t kOrders = 4;
constexpr std::uint64_t kAttemptsOfRound = kOrders + 1;
constexpr std::uint64_t kOneSwapIn = 4;
constexpr std::uint64_t kSwapReach = 8;

}  // namespace

PackingSearch::PackingSearch(absl::Span<const trace::Lifetime> buffers)
    : buffers_(buffers.size()),
      overlaps_(buffers.size()),
      keys_(buffers.size()),
      ranks_(buffers.size()),
      offsets_(buffers.size()) {
  for (Index i = 0; i < buffers.size(); ++i) {
    buffers_[i].size = buffers[i].size;
    keys_[i].length = static_cast<double>(buffers[i].upper - buffers[i].lower);
    keys_[i].area = keys_[i].length * static_cast<double>(buffers[i].size);
    for (Index j = 0; j < i; ++j) {
      if (!buffers[i].Meets(buffers[j])) continue;
      overlaps_[i].push_back(j);
      overlaps_[j].push_back(i);
    }
  }
  MakeSections(buffers);
}

// Only the largest sets of buffers alive together matter: those right before a buffer ends after others began.
void PackingSearch::MakeSections(absl::Span<const trace::Lifetime> buffers) {
  std::vector<Index> by_lower(buffers.size());
  std::iota(by_lower.begin(), by_lower.end(), Index{0});
  std::stable_sort(by_lower.begin(), by_lower.end(),
                   [&](Index a, Index b) { return buffers[a].lower < buffers[b].lower; });
  std::vector<Index> alive;
  std::size_t next = 0;
  while (next < by_lower.size()) {
    std::int64_t first_end = INT64_MAX;
    const auto take = [&] {
      first_end = std::min(first_end, buffers[by_lower[next]].upper);
      alive.push_back(by_lower[next++]);
    };
    for (const Index index : alive) first_end = std::min(first_end, buffers[index].upper);
    if (alive.empty()) take();
    while (next < by_lower.size() && buffers[by_lower[next]].lower < first_end) take();
    Section section;
    section.buffers = alive;
    sections_.push_back(std::move(section));
    if (next == by_lower.size()) break;
    const std::int64_t now = buffers[by_lower[next]].lower;
    std::erase_if(alive, [&](Index index) { return buffers[index].upper <= now; });
  }
  for (Index s = 0; s < sections_.size(); ++s) {
    for (const Index index : sections_[s].buffers) {
      Buffer& buffer = buffers_[index];
      if (buffer.end_section == 0) buffer.first_section = s;
      buffer.end_section = s + 1;
    }
  }
  for (Index i = 0; i < buffers_.size(); ++i) {
    keys_[i].sections = static_cast<double>(buffers_[i].end_section - buffers_[i].first_section);
  }
  crossings_.resize(sections_.size());
}

void PackingSearch::Start(std::uint64_t attempt) {
  attempt_ = attempt;
  steps_ = 0;
  changes_.clear();
  placed_.clear();
  for (Buffer& buffer : buffers_) buffer.floor = 0, buffer.is_placed = false;
  for (Section& section : sections_) {
    section.floor = section.rest = 0;
    for (const Index index : section.buffers) section.rest += buffers_[index].size;
  }
  std::fill(crossings_.begin(), crossings_.end(), 0);
  for (const Buffer& buffer : buffers_) {
    for (Index s = buffer.first_section; s + 1 < buffer.end_section; ++s) ++crossings_[s];
  }
}

// Buffers that are in full sections, long or large come first: what is hard to place late. Attempts beyond the fixed
// orders shake these.
void PackingSearch::Rank(const Part& part) {
  static constexpr std::array<std::array<Key, 3>, kOrders> kKeys = {{{&Keys::total, &Keys::length, &Keys::area},
                                                                     {&Keys::total, &Keys::sections, &Keys::length},
                                                                     {&Keys::total, &Keys::area, &Keys::length},
                                                                     {&Keys::length, &Keys::area, &Keys::total}}};
  const std::uint64_t place_in_round = attempt_ % kAttemptsOfRound;
  const std::array<Key, 3>& keys = kKeys[place_in_round % kOrders];
  std::vector<Index> order = part.buffers;
  for (const Index index : order) {
    std::uint64_t total = 0;
    for (Index s = buffers_[index].first_section; s < buffers_[index].end_section; ++s) {
      total = std::max(total, sections_[s].rest);
    }
    keys_[index].total = static_cast<double>(total);
    steps_ += buffers_[index].end_section - buffers_[index].first_section;
  }
  std::sort(order.begin(), order.end(), [&](Index a, Index b) {
    for (const Key key : keys) {
      if (keys_[a].*key != keys_[b].*key) return keys_[a].*key > keys_[b].*key;
    }
    return a < b;
  });
  Rng rng(attempt_);
  for (std::size_t i = 0; place_in_round >= kOrders && i + 1 < order.size(); ++i) {
    if (rng.Below(kOneSwapIn) != 0) continue;
    std::swap(order[i], order[i + 1 + rng.Below(std::min<std::uint64_t>(kSwapReach, order.size() - i - 1))]);
  }
  for (std::size_t i = 0; i < order.size(); ++i) Set(ranks_[order[i]], i);
}

SearchEnd PackingSearch::Run(std::uint64_t height, std::uint64_t max_steps, std::uint64_t& steps) {
  height_ = height;
  std::uint64_t limit = kFirstStepsPerBuffer * (buffers_.size() + 1);
  for (std::uint64_t attempt = 0, left = max_steps; left > 0; ++attempt) {
    if (attempt > 0 && attempt % kAttemptsOfRound == 0) limit *= 2;
    Start(attempt);
    step_limit_ = std::min(limit, left);
    Part whole{std::vector<Index>(buffers_.size()), 0, static_cast<Index>(sections_.size())};
    std::iota(whole.buffers.begin(), whole.buffers.end(), Index{0});
    const bool is_found = CanFit(whole, 0) && SearchRest(whole, static_cast<Index>(buffers_.size()), {});
    steps += steps_;
    left -= std::min(left, steps_);
    if (is_found) return SearchEnd::kFound;
    if (steps_ < step_limit_) return SearchEnd::kNone;
  }
  return SearchEnd::kStopped;
}

void PackingSearch::Set(std::uint64_t& value, std::uint64_t to) {
  changes_.push_back({&value, value});
  value = to;
}

void PackingSearch::UndoTo(std::size_t changes, std::size_t placed) {
  for (; changes_.size() > changes; changes_.pop_back()) *changes_.back().value = changes_.back().before;
  for (; placed_.size() > placed; placed_.pop_back()) buffers_[placed_.back()].is_placed = false;
}

void PackingSearch::RaiseFloors(Index index, std::uint64_t top) {
  for (const Index other : overlaps_[index]) {
    Buffer& buffer = buffers_[other];
    if (buffer.is_placed || buffer.floor >= top) continue;
    Set(buffer.floor, top);
    is_too_high_ = is_too_high_ || top + buffer.size > height_;
    for (Index s = buffer.first_section; s < buffer.end_section; ++s) {
      if (sections_[s].mark == mark_) continue;
      sections_[s].mark = mark_;
      touched_.push_back(s);
    }
  }
  steps_ += overlaps_[index].size();
}

// No section lies lower than the lowest of its unplaced buffers.
void PackingSearch::RaiseSections(std::uint64_t top, Index index) {
  for (Index s = buffers_[index].first_section; s < buffers_[index].end_section; ++s) {
    Set(sections_[s].floor, top);
    Set(sections_[s].rest, sections_[s].rest - buffers_[index].size);
    if (s + 1 < buffers_[index].end_section) Set(crossings_[s], crossings_[s] - 1);
  }
  for (const Index s : touched_) {
    std::uint64_t floor = UINT64_MAX;
    for (const Index other : sections_[s].buffers) {
      if (!buffers_[other].is_placed) floor = std::min(floor, buffers_[other].floor);
    }
    steps_ += sections_[s].buffers.size();
    if (floor != UINT64_MAX && floor > sections_[s].floor) Set(sections_[s].floor, floor);
  }
}

void PackingSearch::PlaceBuffer(Index index) {
  Buffer& buffer = buffers_[index];
  buffer.is_placed = true;
  placed_.push_back(index);
  offsets_[index] = buffer.floor;
  ++mark_;
  touched_.clear();
  is_too_high_ = false;
  const std::uint64_t top = buffer.floor + buffer.size;
  RaiseFloors(index, top);
  RaiseSections(top, index);
}

// Nothing more is placed below `offset`.
bool PackingSearch::CanFit(const Part& part, std::uint64_t offset) {
  steps_ += part.end_section - part.first_section;
  for (Index s = part.first_section; s < part.end_section; ++s) {
    const Section& section = sections_[s];
    if (section.rest > 0 && std::max(section.floor, offset) + section.rest > height_) return false;
  }
  return true;
}

std::vector<PackingSearch::Place> PackingSearch::Candidates(const Part& part, Place least) {
  std::uint64_t lowest_top = UINT64_MAX;
  for (const Index index : part.buffers) {
    lowest_top = std::min(lowest_top, buffers_[index].floor + buffers_[index].size);
  }
  std::vector<Place> out;
  for (const Index index : part.buffers) {
    const Place place{buffers_[index].floor, ranks_[index], index};
    if (place.offset < lowest_top && place >= least) out.push_back(place);
  }
  std::sort(out.begin(), out.end());
  steps_ += 2 * part.buffers.size();
  return out;
}

// Whether an unplaced buffer can come to lie above this one.
bool PackingSearch::IsCovered(Index index) const {
  return std::any_of(overlaps_[index].begin(), overlaps_[index].end(),
                     [this](Index other) { return !buffers_[other].is_placed; });
}

bool PackingSearch::SearchPart(const Part& part, Place least) {
  for (const Place place : Candidates(part, least)) {
    if (steps_ >= step_limit_) return false;
    const Index index = place.index;
    const std::size_t changes = changes_.size(), placed = placed_.size();
    PlaceBuffer(index);
    const bool is_covered = IsCovered(index);
    const bool was_possible = !is_too_high_ && CanFit(part, place.offset);
    if (was_possible && SearchRest(part, index, place)) return true;
    UndoTo(changes, placed);
    if (was_possible && !is_covered) return false;
  }
  return false;
}

// What is left of `part` without `placed`, cut where no unplaced buffer crosses.
bool PackingSearch::SearchRest(const Part& part, Index placed, Place least) {
  if (part.buffers.empty()) return true;
  bool is_cut = placed >= buffers_.size();
  for (Index s = is_cut ? 0 : buffers_[placed].first_section; !is_cut && s + 1 < buffers_[placed].end_section; ++s) {
    is_cut = crossings_[s] == 0;
  }
  std::vector<Part> parts(1, Part{{}, part.first_section, part.end_section});
  std::vector<Index> part_of;
  if (is_cut) {
    parts.clear();
    part_of.resize(part.end_section - part.first_section);
    for (Index s = part.first_section; s < part.end_section; ++s) {
      if (s == part.first_section || crossings_[s - 1] == 0) parts.push_back({{}, s, s});
      parts.back().end_section = s + 1;
      part_of[s - part.first_section] = static_cast<Index>(parts.size() - 1);
    }
  }
  for (const Index index : part.buffers) {
    if (index == placed) continue;
    parts[is_cut ? part_of[buffers_[index].first_section - part.first_section] : 0].buffers.push_back(index);
  }
  steps_ += part.buffers.size();
  std::erase_if(parts, [](const Part& one) { return one.buffers.empty(); });
  if (is_cut && (parts.size() > 1 || placed >= buffers_.size())) {
    least = {least.offset, 0, 0};
    for (const Part& one : parts) Rank(one);
  }
  return std::all_of(parts.begin(), parts.end(), [&](const Part& one) { return SearchPart(one, least); });
}

}  // namespace ashlar::analyses
