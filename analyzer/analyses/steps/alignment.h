// Aligns the end of a sequence of requests with an earlier place of the same sequence: where the program was in the
// same place one step before. Equal requests have equal tokens. Small differences (a request more or less) are stepped
// over. Private to Continue. Pure functions.
//
//   A B C D E   A B C D E   A B C|          the end is after the third C; it is aligned with the second
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_ALIGNMENT_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_ALIGNMENT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace ashlar::analyses {

inline constexpr std::size_t kNoPartner = std::numeric_limits<std::size_t>::max();

struct Alignment {
  std::size_t at = 0;                // the earlier place that the last token is aligned with
  std::vector<std::size_t> partner;  // of each token: the one a step earlier, or kNoPartner

  // Share of the tokens from `begin` to the end that have a partner, 0 to 1.
  double ShareSince(std::size_t begin) const;
};

// How many tokens right before and with each position equal those at the end; 0 for the last itself. O(n).
std::vector<std::size_t> EqualHistories(absl::Span<const std::uint32_t> tokens);

// The place before `before` with the longest equal history, of those with few differences the latest. nullopt: the
// last token stands nowhere before.
std::optional<Alignment> AlignEnd(absl::Span<const std::uint32_t> tokens, std::size_t before);

// What a request of an earlier step is in a later one of other sizes: told from the requests that both have. Private to
// Continue. Pure; sizes are bytes.

// Ratios of sizes, and their median, which is found once after the last was added.
class Ratios {
 public:
  void Add(double ratio) {
    values_.push_back(ratio);
    median_.reset();
  }
  bool IsEmpty() const { return values_.empty(); }
  double Median() const;  // not of none

 private:
  std::vector<double> values_;
  mutable std::optional<double> median_;
};

class SizeMap {
 public:
  // A request of the earlier step, and what stands in its place now. In order.
  void Add(std::uint32_t token, std::uint64_t before, std::uint64_t now);
  // A size that does not change with the batch: of a parameter, of its gradient.
  void AddLasting(std::uint64_t size) { lasting_.insert(size); }

  // False: all sizes seen are as they were.
  bool Changes() const { return !ratios_.IsEmpty(); }
  // `lasts`: the block outlived its step, as gradients and state do.
  std::uint64_t Of(std::uint32_t token, std::uint64_t before, bool lasts) const;

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> by_stack_;
  std::map<std::uint64_t, std::uint64_t> by_size_;
  std::map<std::uint32_t, Ratios> ratios_of_;  // all, of each stack
  Ratios ratios_;                              // of those that changed
  std::set<std::uint64_t> lasting_;
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_ALIGNMENT_H_
