// Everything the detectors look at, made of one timeline: owns what a CauseInput points to.
//
//   CauseContext context(timeline, {.options = &options, .stacks = &snapshot.stacks});
//   std::vector<CauseFinding> causes = FindCauses(context.input());
//
// The timeline and what the facts point to must outlive it. Not copyable: the input points into it.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_CONTEXT_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/analyses/causes/cause.h"

namespace ashlar::analyses {

// What is known beside the timeline; what is not is nullptr, nullopt or empty.
struct CauseFacts {
  const policy::Options* options = nullptr;
  const trace::StackTable* stacks = nullptr;
  const trace::RecordedSettings* settings = nullptr;
  absl::Span<const trace::Annotation> annotations = {};
  std::optional<std::uint64_t> total_bytes = {};
  std::optional<std::uint64_t> device_used_bytes = {};
  std::vector<RankPeak> ranks = {};
};

// Where to look: the last out-of-memory error, else the peak of allocated memory, else the only state there is.
timeline::EventIndex MomentOf(const timeline::Timeline& timeline);

class CauseContext {
 public:
  CauseContext(const timeline::Timeline& timeline, const CauseFacts& facts);
  CauseContext(const CauseContext&) = delete;
  CauseContext& operator=(const CauseContext&) = delete;

  const CauseInput& input() const { return input_; }

 private:
  timeline::State state_;
  PinBlame pins_;
  Steps steps_;
  std::vector<Growth> growths_;
  std::optional<FailedRequest> failed_;
  std::vector<RankPeak> ranks_;
  CauseInput input_;
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_CONTEXT_H_
