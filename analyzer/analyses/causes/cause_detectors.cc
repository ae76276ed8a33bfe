#include "analyzer/analyses/causes/cause_detectors.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/causes/program_causes.h"
#include "analyzer/analyses/state/live_stacks.h"

namespace ashlar::analyses {

absl::Span<const CauseDetector> Detectors() {
  static constexpr CauseDetector kDetectors[] = {
      {CauseKind::kCapacity, CauseNeeds::kAnything, DetectCapacity},
      {CauseKind::kPinnedSegment, CauseNeeds::kAnything, DetectPinnedSegment},
      {CauseKind::kGrowingSizes, CauseNeeds::kEvents, DetectGrowingSizes},
      {CauseKind::kLogitsSpike, CauseNeeds::kStacks, DetectLogitsSpike},
      {CauseKind::kOptimizerState, CauseNeeds::kStacks, DetectOptimizerState},
      {CauseKind::kOptimizerTemporaries, CauseNeeds::kStacks, DetectOptimizerTemporaries},
      {CauseKind::kGraphKeptAlive, CauseNeeds::kSteps, DetectGraphKeptAlive},
      {CauseKind::kEvalWithoutNoGrad, CauseNeeds::kStacks, DetectEvalWithoutNoGrad},
      {CauseKind::kEvalAccumulates, CauseNeeds::kStacks, DetectEvalAccumulates},
      {CauseKind::kLoadedTwice, CauseNeeds::kStacks, DetectLoadedTwice},
      {CauseKind::kRecordStream, CauseNeeds::kEvents, DetectRecordStream},
      {CauseKind::kStreamsDoNotShare, CauseNeeds::kEvents, DetectStreamsDoNotShare},
      {CauseKind::kPrivatePools, CauseNeeds::kAnything, DetectPrivatePools},
      {CauseKind::kSmallLargeSplit, CauseNeeds::kState, DetectSmallLargeSplit},
      {CauseKind::kMediumRequests, CauseNeeds::kState, DetectMediumRequests},
      {CauseKind::kRetryStorm, CauseNeeds::kEvents, DetectRetryStorm},
      {CauseKind::kMaxSplitSize, CauseNeeds::kEvents, DetectMaxSplitSize},
      {CauseKind::kRounding, CauseNeeds::kState, DetectRounding},
      {CauseKind::kNotExpandable, CauseNeeds::kEvents, DetectNotExpandable},
      {CauseKind::kOtherProcess, CauseNeeds::kAnything, DetectOtherProcess},
      {CauseKind::kOtherRanksContexts, CauseNeeds::kAnything, DetectOtherRanksContexts},
      {CauseKind::kWorkspaces, CauseNeeds::kAnything, DetectWorkspaces},
      {CauseKind::kGradientsKept, CauseNeeds::kStacks, DetectGradientsKept},
      {CauseKind::kRankImbalance, CauseNeeds::kAnything, DetectRankImbalance},
      {CauseKind::kCacheBetweenPhases, CauseNeeds::kStacks, DetectCacheBetweenPhases},
  };
  return kDetectors;
}

CauseFinding Found(CauseKind kind, Confidence confidence, std::uint64_t bytes) {
  CauseFinding out;
  out.kind = kind;
  out.finding = Finding::kFound;
  out.confidence = confidence;
  out.bytes = bytes;
  return out;
}

CauseFinding Absent(CauseKind kind, std::string counter_evidence) {
  CauseFinding out;
  out.kind = kind;
  out.finding = Finding::kAbsent;
  out.counter_evidence.push_back(std::move(counter_evidence));
  return out;
}

CauseFinding NotInTrace(CauseKind kind, std::string missing) {
  CauseFinding out;
  out.kind = kind;
  out.finding = Finding::kNotInTrace;
  out.missing = std::move(missing);
  return out;
}

bool IsMaterial(const CauseInput& input, std::uint64_t bytes) {
  if (input.timeline == nullptr) return bytes >= kLeastMaterialBytes;
  const std::optional<Shortage> shortage = ShortageAt(input);
  if (shortage.has_value() && shortage->MissingBytes() > 0 && bytes >= shortage->MissingBytes()) return true;
  const std::uint64_t reserved = input.timeline->TotalsAfter(input.moment).reserved_bytes;
  return bytes >= kLeastMaterialBytes &&
         static_cast<double>(bytes) >= kLeastMaterialShare * static_cast<double>(reserved);
}

std::optional<Shortage> ShortageAt(const CauseInput& input) {
  if (input.timeline == nullptr || input.moment < 0) return std::nullopt;
  const trace::Event& event = input.timeline->events()[static_cast<std::size_t>(input.moment)];
  if (event.action != trace::Action::kOom) return std::nullopt;
  const policy::Options options = input.options != nullptr ? *input.options : policy::Options{};
  Shortage out;
  out.stream = event.stream;
  out.pool = event.pool.value_or(PoolId{});
  out.request_bytes = event.size_bytes;
  out.segment_bytes = policy::SegmentBytes(std::max<std::uint64_t>(event.size_bytes, 1), options);
  out.device_free_bytes = event.address;
  return out;
}

std::uint64_t SparableBytes(const CauseInput& input) {
  if (ShortageAt(input).has_value()) {
    const timeline::Totals& totals = input.timeline->TotalsAfter(input.moment);
    return totals.reserved_bytes - totals.active_bytes;
  }
  return input.timeline->reserved_peak().bytes - input.timeline->active_peak().bytes;
}

void SetStacks(const CauseInput& input, CauseFinding& finding) {
  std::map<trace::StackId, std::uint64_t> bytes;
  for (const std::size_t index : finding.blocks) {
    const timeline::BlockSpan& block = input.timeline->blocks()[index];
    if (block.stack != trace::kNoStack) bytes[block.stack] += block.size_bytes;
  }
  finding.stacks.clear();
  for (const auto& [stack, held] : bytes) finding.stacks.push_back(stack);
  std::stable_sort(finding.stacks.begin(), finding.stacks.end(),
                   [&bytes](trace::StackId a, trace::StackId b) { return bytes.at(a) > bytes.at(b); });
}

std::string LabelOf(const CauseInput& input, trace::StackId stack) {
  if (input.stacks == nullptr) return "no stack recorded";
  return StackLabel(*input.stacks, stack);
}

std::string ShareText(std::uint64_t part_bytes, std::uint64_t whole_bytes) {
  if (whole_bytes == 0) return "0.0 %";
  return absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(part_bytes) / static_cast<double>(whole_bytes));
}

}  // namespace ashlar::analyses
