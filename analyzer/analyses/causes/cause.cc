#include "analyzer/analyses/causes/cause.h"

#include <algorithm>
#include <tuple>

#include "analyzer/analyses/causes/cause_detectors.h"

namespace ashlar::analyses {
namespace {

struct CauseText {
  absl::string_view name;
  absl::string_view sentence;
};

// In the order of CauseKind.
constexpr CauseText kTexts[kCauseCount] = {
    {"capacity", "The program needs more memory than the device has"},
    {"pinned_segment", "Small long-lived blocks keep large segments from being reused or returned"},
    {"growing_sizes", "Requests grow, so that no cached block fits the next one"},
    {"logits_spike", "Logits and cross-entropy make the peak"},
    {"optimizer_state", "The optimizer's state appears in its first step"},
    {"optimizer_temporaries", "A multi-tensor optimizer makes temporaries as large as its lists"},
    {"graph_kept_alive", "Activations of older steps are still alive: something keeps their graph"},
    {"eval_without_no_grad", "An evaluation keeps activations that only a backward pass needs"},
    {"eval_accumulates", "Predictions of an evaluation pile up on the device"},
    {"loaded_twice", "Two copies of the parameters are alive while a checkpoint is loaded"},
    {"record_stream", "Freed blocks wait for another stream (record_stream)"},
    {"streams_do_not_share", "Free memory lies with another stream, and streams do not share it"},
    {"private_pools", "Free memory lies in private pools (CUDA graphs, MemPool)"},
    {"small_large_split", "Free memory lies in the pool for the other class of sizes"},
    {"medium_requests", "Requests of 1 to 10 MiB each hold a whole segment of 20 MiB"},
    {"retry_storm", "The cache is returned to the device and obtained again, over and over"},
    {"max_split_size", "max_split_size_mb keeps free memory from being used"},
    {"rounding", "Rounding and unsplit rests take memory that nobody asked for"},
    {"not_expandable", "Expandable segments are not in use, and would not have these holes"},
    {"other_process", "Another process holds memory of this device"},
    {"other_ranks_contexts", "Other ranks hold CUDA contexts on this device"},
    {"workspaces", "The CUDA context and library workspaces take the memory"},
    {"gradients_kept", "Gradients stay alive across micro-steps"},
    {"rank_imbalance", "One rank peaks above the others"},
    {"cache_between_phases", "What one phase cached cannot serve the next"},
};

const CauseText& TextOf(CauseKind kind) { return kTexts[static_cast<std::size_t>(kind)]; }

// What `needs` asks for and is not there; empty where nothing is missing.
std::string MissingFor(CauseNeeds needs, const CauseInput& input) {
  if (needs == CauseNeeds::kAnything) return "";
  if (input.timeline == nullptr || input.state == nullptr) return kRecordHistory;
  if (needs == CauseNeeds::kState) return "";
  const auto events = input.timeline->events();
  const bool has_allocations = std::any_of(events.begin(), events.end(),
                                           [](const trace::Event& e) { return e.action == trace::Action::kAlloc; });
  if (!has_allocations) return kRecordHistory;
  if (needs == CauseNeeds::kStacks && (input.stacks == nullptr || input.stacks->stack_count() == 0)) {
    return "call stacks would tell: record them with _record_memory_history(stacks=\"python\")";
  }
  if (needs == CauseNeeds::kSteps && (input.steps == nullptr || input.steps->source == StepSource::kNone)) {
    return "the program's steps would tell: record several whole ones, or mark them with "
           "torch.profiler.record_function";
  }
  return "";
}

CauseFinding RunDetector(const CauseDetector& detector, const CauseInput& input) {
  std::string missing = MissingFor(detector.needs, input);
  CauseFinding out = missing.empty() ? detector.detect(input) : NotInTrace(detector.kind, std::move(missing));
  out.kind = detector.kind;
  return out;
}

}  // namespace

absl::string_view CauseName(CauseKind kind) { return TextOf(kind).name; }

absl::string_view CauseSentence(CauseKind kind) { return TextOf(kind).sentence; }

absl::string_view FindingName(Finding finding) {
  constexpr absl::string_view kNames[] = {"found", "absent", "not_in_trace"};
  return kNames[static_cast<std::size_t>(finding)];
}

absl::string_view ConfidenceName(Confidence confidence) {
  constexpr absl::string_view kNames[] = {"possible", "likely", "proven"};
  return kNames[static_cast<std::size_t>(confidence)];
}

void SortCauses(std::vector<CauseFinding>& findings) {
  const auto key = [](const CauseFinding& finding) {
    const bool is_found = finding.finding == Finding::kFound;
    return std::tuple(finding.finding, is_found ? -static_cast<int>(finding.confidence) : 0,
                      is_found ? ~finding.bytes : 0, finding.kind);
  };
  std::sort(findings.begin(), findings.end(),
            [&key](const CauseFinding& a, const CauseFinding& b) { return key(a) < key(b); });
}

std::vector<CauseFinding> FindCauses(const CauseInput& input) {
  std::vector<CauseFinding> out;
  for (const CauseDetector& detector : Detectors()) out.push_back(RunDetector(detector, input));
  SortCauses(out);
  return out;
}

}  // namespace ashlar::analyses
