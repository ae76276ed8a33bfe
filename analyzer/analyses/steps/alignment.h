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
#include <optional>
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

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_ALIGNMENT_H_
