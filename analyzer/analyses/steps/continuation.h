// Continues a run that ended in a request that failed: what the program would have asked next, told from the step
// before. The cut-off step is aligned with an earlier one by its stacks, the rest of that one is appended with the
// sizes of the cut-off step, and then whole further steps of the same sizes. A free is appended where it stood, of the
// block that stands where the freed one stood a step earlier.
//
//   recorded    a1 b1 c1 -a1 d1 -b1 ... a2 b2|          b2 failed
//   continued                                  c2 -a2 d2 -b2 ... a3 b3  c3 ...
//
// Sizes: as seen (a size of the earlier step and what stands in its place now), else by the ratio that requests of the
// same stack have, else by the median ratio. What keeps its size from step to step, as gradients do, keeps it here.
//
// Where the alignment is weak nothing is promised: `periods` is empty, and `unknown` says why. Pure function; sizes are
// bytes.
//
//   const Continuation next = Continue({&requests, stacks, failed});
//   for (std::size_t i = next.failed + 1; i < next.requests.requests.size(); ++i) ...;   // projected
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_CONTINUATION_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_CONTINUATION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/event.h"
#include "allocator/trace/request.h"
#include "analyzer/analyses/steps/program_part.h"

namespace ashlar::analyses {

// Of the cut-off step's requests, the share that must stand in the step before as well.
inline constexpr double kLeastEqualShare = 0.8;

struct CutOffRun {
  const trace::RequestTrace* requests = nullptr;
  absl::Span<const trace::StackId> stacks = {};    // of each request; kNoStack where not known
  std::size_t failed = 0;                          // the request that failed; later ones are not looked at
  std::vector<std::size_t> earlier_failures = {};  // requests that failed before it, and the program went on
  std::optional<std::size_t> step_begin = {};      // of the cut-off step, where the whole steps before it were found
  const ProgramParts* parts = nullptr;             // of the stacks; nullptr: not known
};

struct Continuation {
  trace::RequestTrace requests = {};        // the recorded ones up to the failed one, then the projected ones
  std::size_t failed = 0;                   // in `requests`; what follows it is projected
  std::vector<std::size_t> periods = {};    // where the projected steps end, in `requests`; empty: nothing is known
  double equal_share = 0;                   // of the cut-off step's requests, those that stand in the step before
  std::uint64_t growth_bytes_per_step = 0;  // by which a projected step leaves more behind than it found
  // The request that failed asked for more in each of the last steps, by no rule: later ones may ask for more still.
  bool is_rising = false;
  std::string unknown = {};  // why nothing is known: "no earlier step"

  bool IsKnown() const { return !periods.empty(); }
};

Continuation Continue(const CutOffRun& run);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_CONTINUATION_H_
