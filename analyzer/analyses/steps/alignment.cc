#include "analyzer/analyses/steps/alignment.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace ashlar::analyses {
namespace {

constexpr std::size_t kCandidates = 48;   // places looked at closely
constexpr double kAlike = 0.9;            // of the best share, what is as good
constexpr std::size_t kMostSkipped = 48;  // requests stepped over at one difference
constexpr std::size_t kSureAgain = 4;     // equal ones in a row that end a difference

using Tokens = absl::Span<const std::uint32_t>;

// Whether the `count` tokens that end at `a` and at `b` are equal.
bool EqualBefore(Tokens tokens, std::size_t a, std::size_t b, std::size_t count) {
  if (a + 1 < count || b + 1 < count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (tokens[a - i] != tokens[b - i]) return false;
  }
  return true;
}

// Steps over a difference: the fewest tokens left out on either side. False: the histories part here.
bool FindAgain(Tokens tokens, std::size_t& a, std::size_t& b) {
  for (std::size_t skipped = 1; skipped <= kMostSkipped; ++skipped) {
    for (std::size_t of_a = 0; of_a <= skipped; ++of_a) {
      const std::size_t of_b = skipped - of_a;
      if (of_a > a || of_b > b || a - of_a >= b - of_b) continue;
      if (!EqualBefore(tokens, a - of_a, b - of_b, kSureAgain)) continue;
      a -= of_a;
      b -= of_b;
      return true;
    }
  }
  return false;
}

Alignment AlignWith(Tokens tokens, std::size_t at) {
  Alignment out{at, std::vector<std::size_t>(tokens.size(), kNoPartner)};
  std::size_t a = at, b = tokens.size() - 1;
  while (true) {
    if (tokens[a] != tokens[b] && !FindAgain(tokens, a, b)) break;
    out.partner[b] = a;
    if (a == 0) break;
    --a;
    --b;
  }
  return out;
}

// Where each token stands last, ascending.
std::vector<std::size_t> LastPlaces(Tokens tokens) {
  std::vector<std::size_t> last(tokens.empty() ? 0 : *std::max_element(tokens.begin(), tokens.end()) + std::size_t{1},
                                0);
  for (std::size_t i = 0; i < tokens.size(); ++i) last[tokens[i]] = i;
  std::sort(last.begin(), last.end());
  return last;
}

// Different tokens after a place.
double DistinctAfter(const std::vector<std::size_t>& last_places, std::size_t place) {
  return static_cast<double>(last_places.end() - std::upper_bound(last_places.begin(), last_places.end(), place));
}

// The first of `places` has the longest equal history, but it may be several steps back, where a step differed. Taken
// is the latest step that is as good but for small differences: as many of its requests have partners, and it is a
// whole step too. A layer of the pass, or the request before in a row of alike ones, has fewer places of the program in
// between. Within that step the longest history decides.
Alignment Choose(Tokens tokens, const std::vector<std::size_t>& histories, const std::vector<std::size_t>& places) {
  const std::size_t last = tokens.size() - 1, longest = places.front();
  const std::size_t begin = tokens.size() - std::min(last - longest, longest + 1);
  Alignment best = AlignWith(tokens, longest);
  const double share = best.ShareSince(begin) * kAlike;
  const std::vector<std::size_t> last_places = LastPlaces(tokens);
  const double distinct = DistinctAfter(last_places, longest) * kAlike;
  std::vector<std::size_t> alike;
  for (const std::size_t place : places) {
    if (place <= longest || DistinctAfter(last_places, place) < distinct) continue;
    if (AlignWith(tokens, place).ShareSince(begin) >= share) alike.push_back(place);
  }
  if (alike.empty()) return best;
  const std::size_t latest = *std::max_element(alike.begin(), alike.end());
  std::size_t chosen = latest;
  for (const std::size_t place : places) {
    const bool is_same_step = place < latest && latest - place < last - latest;
    if (is_same_step && histories[place] > histories[chosen]) chosen = place;
  }
  return AlignWith(tokens, chosen);
}

}  // namespace

double Alignment::ShareSince(std::size_t begin) const {
  if (begin >= partner.size()) return 0;
  std::size_t equal = 0;
  for (std::size_t i = begin; i < partner.size(); ++i) equal += partner[i] == kNoPartner ? 0 : 1;
  return static_cast<double>(equal) / static_cast<double>(partner.size() - begin);
}

std::vector<std::size_t> EqualHistories(absl::Span<const std::uint32_t> tokens) {
  // The Z function of the sequence read backwards.
  const std::size_t n = tokens.size();
  std::vector<std::size_t> z(n, 0), out(n, 0);
  const auto at = [&](std::size_t i) { return tokens[n - 1 - i]; };
  for (std::size_t i = 1, left = 0, right = 0; i < n; ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < n && at(z[i]) == at(i + z[i])) ++z[i];
    if (i + z[i] > right) left = i, right = i + z[i];
    out[n - 1 - i] = z[i];
  }
  return out;
}

std::optional<Alignment> AlignEnd(absl::Span<const std::uint32_t> tokens, std::size_t before) {
  const std::vector<std::size_t> histories = EqualHistories(tokens);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i + 1 < tokens.size() && i < before; ++i) {
    if (histories[i] > 0) places.push_back(i);
  }
  if (places.empty()) return std::nullopt;
  const auto better = [&](std::size_t a, std::size_t b) {
    return std::pair(histories[a], a) > std::pair(histories[b], b);
  };
  const std::size_t kept = std::min(places.size(), kCandidates);
  std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(kept), places.end(), better);
  places.resize(kept);
  return Choose(tokens, histories, places);
}

namespace {

constexpr std::uint64_t kLeastTelling = 4096;

std::uint64_t Scaled(std::uint64_t bytes, double ratio) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * ratio));
}

}  // namespace

double Ratios::Median() const {
  if (!median_.has_value()) {
    std::vector<double> values = values_;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    median_ = *middle;
  }
  return *median_;
}

void SizeMap::Add(std::uint32_t token, std::uint64_t before, std::uint64_t now) {
  if (before == 0 || now == 0) return;
  by_stack_[{token, before}] = now;
  // Where two requests of a size went apart, the one that changed is the one that follows the batch.
  if (auto [place, is_new] = by_size_.try_emplace(before, now); !is_new && now != before) place->second = now;
  // Counters and flags of a few bytes say nothing of the batch.
  if (before < kLeastTelling) return;
  const double ratio = static_cast<double>(now) / static_cast<double>(before);
  ratios_of_[token].Add(ratio);
  if (now != before) ratios_.Add(ratio);
}

std::uint64_t SizeMap::Of(std::uint32_t token, std::uint64_t before, bool lasts) const {
  if (!Changes()) return before;
  if (lasts && lasting_.count(before) > 0) return before;
  if (const auto seen = by_stack_.find({token, before}); seen != by_stack_.end()) return seen->second;
  if (const auto seen = by_size_.find(before); seen != by_size_.end()) return seen->second;
  if (lasting_.count(before) > 0 || before < kLeastTelling) return before;
  if (const auto seen = ratios_of_.find(token); seen != ratios_of_.end()) return Scaled(before, seen->second.Median());
  return Scaled(before, ratios_.Median());
}

}  // namespace ashlar::analyses
