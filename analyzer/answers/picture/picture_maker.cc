#include "analyzer/answers/picture/picture_maker.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/answers/picture/host_picture.h"
#include "analyzer/answers/picture/moments.h"
#include "analyzer/answers/picture/named_events.h"
#include "analyzer/answers/picture/picture_stacks.h"
#include "analyzer/answers/picture/run_picture.h"

namespace ashlar::answers {
namespace {

using timeline::EventIndex;

bool IsFound(const ExplainedCause& cause) { return cause.finding.finding == analyses::Finding::kFound; }

// What the allocator can hold: told by a failure, else what the device has but for what lies outside.
std::optional<std::uint64_t> CapacityOf(const Explanation& explanation) {
  if (explanation.what_if_capacity_bytes.has_value()) return explanation.what_if_capacity_bytes;
  const OomAccounting& parts = explanation.accounting;
  if (!parts.total_bytes.has_value()) return std::nullopt;
  const std::uint64_t outside = parts.outside_bytes.value_or(0);
  return *parts.total_bytes - std::min(outside, *parts.total_bytes);
}

}  // namespace

PictureMaker::PictureMaker(const PictureLimits& limits, const timeline::Timeline& observed,
                           const trace::StackTable* stacks, const trace::LabelTable& labels)
    : limits_(limits),
      observed_(observed),
      table_(stacks),
      texts_(observed, labels),
      what_ifs_(limits_, origins_, texts_, observed.events().size()) {}

void PictureMaker::AddHost(const trace::Snapshot& snapshot) { host_ = PictureOfHost(snapshot, limits_); }

// What a cause is about, at a moment when it is there: the moment looked at, else where its sentences point, else where
// its first block was allocated.
EventIndex PictureMaker::EventOfCause(const analyses::CauseFinding& finding) const {
  const EventIndex moment = analyses::MomentOf(observed_);
  std::vector<EventIndex> candidates = {moment};
  for (const std::string& sentence : finding.evidence) AddNamedEvents(sentence, candidates);
  if (finding.blocks.empty()) {
    const bool points_elsewhere = candidates.size() > 1 && candidates[1] < observed_.event_count();
    return points_elsewhere ? candidates[1] : moment;
  }
  const auto blocks = observed_.blocks();
  for (const EventIndex event : candidates) {
    const auto is_there = [&](std::size_t block) { return blocks[block].IsActiveAfter(event); };
    if (event < observed_.event_count() && std::any_of(finding.blocks.begin(), finding.blocks.end(), is_there)) {
      return event;
    }
  }
  return blocks[finding.blocks.front()].alloc_event;
}

std::vector<EventIndex> PictureMaker::PointedAt(const Explanation& explanation) const {
  std::vector<EventIndex> out = NamedEvents(explanation);
  out.push_back(analyses::MomentOf(observed_));
  for (const ExplainedCause& cause : explanation.causes) {
    if (IsFound(cause)) out.push_back(EventOfCause(cause.finding));
  }
  const analyses::Steps& steps = explanation.program.steps;
  // Of more steps than there are moments no one can see each.
  if (steps.steps.size() + steps.phases.size() > limits_.MostMoments(observed_.events().size()) / 8) return out;
  for (const analyses::EventRange& step : steps.steps) out.insert(out.end(), {step.begin, step.end});
  for (const analyses::Phase& phase : steps.phases) out.insert(out.end(), {phase.events.begin, phase.events.end});
  return out;
}

void PictureMaker::AddSteps(const Explanation& explanation, RunPicture& run) const {
  const MomentTable moments(run.moments.events, observed_.event_count());
  const auto range = [&](const analyses::EventRange& events) {
    return MomentRange{moments.Since(events.begin), moments.Since(events.end)};
  };
  for (const analyses::EventRange& step : explanation.program.steps.steps) run.steps.push_back(range(step));
  for (const analyses::Phase& phase : explanation.program.steps.phases) {
    run.phases.push_back({phase.name, range(phase.events)});
  }
}

void PictureMaker::AddCauses(const Explanation& explanation, const std::vector<std::uint32_t>& block_sources,
                             Picture& out) {
  const MomentTable moments(out.runs.front().moments.events, observed_.event_count());
  for (const ExplainedCause& cause : explanation.causes) {
    if (!IsFound(cause)) continue;
    CausePicture picture{
        std::string(analyses::CauseName(cause.finding.kind)), moments.Since(EventOfCause(cause.finding)), {}, {}};
    for (const std::size_t block : cause.finding.blocks) {
      const auto found = std::lower_bound(block_sources.begin(), block_sources.end(), block);
      if (found == block_sources.end() || *found != block) continue;
      picture.blocks.push_back(static_cast<std::size_t>(found - block_sources.begin()));
    }
    picture.stacks = cause.finding.stacks;
    out.causes.push_back(std::move(picture));
  }
}

void PictureMaker::AddObserved(const Explanation& explanation, Picture& out) {
  RunFacts facts{.most_moments = limits_.MostMoments(observed_.events().size()), .pointed_at = PointedAt(explanation)};
  if (!places_.empty()) {
    facts.place_of = [this](EventIndex event) { return places_[static_cast<std::size_t>(event)]; };
  }
  if (!texts_.texts().empty()) facts.text_of = [this](EventIndex event) { return texts_.TextOf(event); };
  PicturedRun made = PictureOfRun(observed_, facts);
  made.run.name = "as recorded";
  AddSteps(explanation, made.run);
  out.runs.push_back(std::move(made.run));
  AddCauses(explanation, made.block_sources, out);
  const MomentTable moments(out.runs.front().moments.events, observed_.event_count());
  for (const EventIndex event : NamedEvents(explanation)) {
    if (event < observed_.event_count()) out.named_events.push_back({event, moments.Since(event)});
  }
}

void PictureMaker::Finish(Explanation& out) {
  auto picture = std::make_shared<Picture>();
  picture->device = observed_.device();
  AddObserved(out, *picture);
  for (auto& [row, run] : what_ifs_.runs()) {
    run.name = out.what_if[row].conf;  // as the explanation names it
    picture->runs.push_back(std::move(run));
  }
  for (RunPicture& run : picture->runs) run.capacity_bytes = CapacityOf(out);
  if (host_.has_value()) picture->runs.push_back(*std::move(host_));
  PictureStacks stacks(table_);
  for (RunPicture& run : picture->runs) stacks.Renumber(run);
  for (CausePicture& cause : picture->causes) {
    for (std::uint32_t& stack : cause.stacks) stack = stacks.Number(stack);
  }
  stacks.MoveTo(*picture);
  picture->texts = texts_.texts();
  out.picture = std::move(picture);
}

}  // namespace ashlar::answers
