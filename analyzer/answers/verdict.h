// The last word on a failure. The failed request alone gives a first verdict (core::JudgeOom); what the causes, the
// replays and the projection of the cut-off step tell may overrule it, so that verdict, causes, table and advice never
// contradict each other:
//
//   leak         each step leaves memory behind, and that is a quarter of what is live, or a tenth and more than the
//   holes capacity     every setting that gets past the request fails again for want of memory, holes or none
//   nearly_full  the request is said not to fit, and a replay found room for it
//
// Whatever no setting can cure pastes none. Pure function.
#ifndef ASHLAR_ANALYZER_ANSWERS_VERDICT_H_
#define ASHLAR_ANALYZER_ANSWERS_VERDICT_H_

#include <cstdint>
#include <optional>

#include "analyzer/answers/explanation.h"

namespace ashlar::answers {

inline constexpr double kLeastLeakShare = 0.25;  // of what is live
inline constexpr double kLeastShareBesideHoles = 0.10;

// What grows from step to step, alive at the failure.
struct GrowingBytes {
  std::uint64_t bytes = 0;
  std::uint64_t bytes_per_step = 0;
};

// From the steps of the program; nullopt where nothing grows, or no steps are known.
std::optional<GrowingBytes> GrowingOf(const Explanation& explanation);

// Of an explanation whose accounting, first verdict, what-ifs, advice and causes are filled.
void SetLastVerdict(const std::optional<GrowingBytes>& growing, Explanation& explanation);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_VERDICT_H_
