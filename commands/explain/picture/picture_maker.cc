#include "commands/explain/picture/picture_maker.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "commands/explain/picture/run_picture.h"
#include "commands/shared/held_text.h"

namespace ashlar::answers {
namespace {

using timeline::EventIndex;

bool IsFound(const ExplainedCause& cause) { return cause.finding.finding == analyses::Finding::kFound; }

// What the allocator can hold: told by a failure, else what the device has but for what lies outside.
std::optional<std::uint64_t> CapacityOf(const Explanation& explanation) {
  if (explanation.what_ifs.capacity_bytes.has_value()) return explanation.what_ifs.capacity_bytes;
  const OomAccounting& parts = explanation.memory.accounting;
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

void PictureMaker::AddRecord(const trace::Snapshot& snapshot) {
  host_ = PictureOfHost(snapshot, limits_);
  if (!snapshot.settings.has_value()) return;
  for (const auto& [key, value] : snapshot.settings->values) {
    if (!absl::StartsWith(key, trace::kDeviceKeys)) settings_.emplace_back(key, value);  // what the answer itself tells
  }
}

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
  for (const ExplainedCause& cause : explanation.why.causes) {
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
  for (const ExplainedCause& cause : explanation.why.causes) {
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

void PictureMaker::AddHolders(const Explanation& explanation, const std::vector<std::uint32_t>& block_sources,
                              Picture& out) {
  const std::optional<analyses::HeldByName>& held = explanation.memory.holders.names;
  if (!held.has_value()) return;
  for (const analyses::HeldRow& row : held->rows) out.holders.push_back(report::HolderText(row.holder));
  std::vector<BlockPicture>& blocks = out.runs.front().blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto found = held->row_of.find(block_sources[i]);
    if (found != held->row_of.end()) blocks[i].holder = static_cast<std::uint32_t>(found->second);
  }
}

void PictureMaker::AddObserved(const Explanation& explanation, Picture& out) {
  RunFacts facts{.most_moments = limits_.MostMoments(observed_.events().size()),
                 .most_blocks = limits_.observed_blocks,
                 .pointed_at = PointedAt(explanation)};
  if (!places_.empty()) {
    facts.place_of = [this](EventIndex event) { return places_[static_cast<std::size_t>(event)]; };
  }
  if (!texts_.texts().empty()) facts.text_of = [this](EventIndex event) { return texts_.TextOf(event); };
  PicturedRun made = PictureOfRun(observed_, facts);
  made.run.name = "as recorded";
  AddSteps(explanation, made.run);
  out.runs.push_back(std::move(made.run));
  AddCauses(explanation, made.block_sources, out);
  AddHolders(explanation, made.block_sources, out);
  const MomentTable moments(out.runs.front().moments.events, observed_.event_count());
  for (const EventIndex event : NamedEvents(explanation)) {
    if (event < observed_.event_count()) out.named_events.push_back({event, moments.Since(event)});
  }
}

std::shared_ptr<const Picture> PictureMaker::Draw(const Explanation& explanation) {
  auto picture = std::make_shared<Picture>();
  picture->device = observed_.device();
  AddObserved(explanation, *picture);
  for (auto& [row, run] : what_ifs_.runs()) {
    run.name = explanation.what_ifs.rows[row].conf;  // as the explanation names it
    picture->runs.push_back(std::move(run));
  }
  for (RunPicture& run : picture->runs) run.capacity_bytes = CapacityOf(explanation);
  if (host_.has_value()) picture->runs.push_back(*std::move(host_));
  PictureStacks stacks(table_);
  for (RunPicture& run : picture->runs) stacks.Renumber(run);
  for (CausePicture& cause : picture->causes) {
    for (std::uint32_t& stack : cause.stacks) stack = stacks.Number(stack);
  }
  stacks.MoveTo(*picture);
  picture->texts = texts_.texts();
  picture->settings = settings_;
  return picture;
}

std::uint32_t PictureStacks::Number(trace::StackId stack) {
  if (table_ == nullptr || stack == trace::kNoStack) return trace::kNoStack;
  const auto [found, is_new] = numbers_.try_emplace(stack, static_cast<std::uint32_t>(stacks_.size()));
  if (!is_new) return found->second;
  StackPicture picture{analyses::StackLabel(*table_, stack), analyses::PartLabel(*table_, stack), {}};
  for (const trace::FrameId frame : table_->stack(stack)) picture.frames.push_back(NumberOfFrame(frame));
  stacks_.push_back(std::move(picture));
  return found->second;
}

std::uint32_t PictureStacks::NumberOfFrame(trace::FrameId frame) {
  const auto [found, is_new] = frame_numbers_.try_emplace(frame, static_cast<std::uint32_t>(frames_.size()));
  if (is_new) frames_.push_back(table_->frame(frame));
  return found->second;
}

void PictureStacks::Renumber(RunPicture& run) {
  for (BlockPicture& block : run.blocks) block.stack = Number(block.stack);
  for (SegmentPicture& segment : run.segments) segment.stack = Number(segment.stack);
}

void PictureStacks::MoveTo(Picture& picture) {
  picture.stacks = std::move(stacks_);
  picture.frames = std::move(frames_);
}

namespace {

// "6,768: 638 MiB" gives 6768 and leaves ": 638 MiB". A comma that no digit follows is the sentence's.
std::optional<EventIndex> TakeNumber(absl::string_view& text) {
  std::string digits;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const bool is_group = text[at] == ',' && at + 1 < text.size() && absl::ascii_isdigit(text[at + 1]) && at > 0;
    if (!absl::ascii_isdigit(text[at]) && !is_group) break;
    if (!is_group) digits += text[at];
  }
  EventIndex number = 0;
  if (!absl::SimpleAtoi(digits, &number)) return std::nullopt;
  text.remove_prefix(at);
  return number;
}

}  // namespace

void AddNamedEvents(absl::string_view sentence, std::vector<EventIndex>& out) {
  constexpr absl::string_view kWord = "event";
  for (std::size_t at = sentence.find(kWord); at != absl::string_view::npos; at = sentence.find(kWord, at + 1)) {
    absl::string_view rest = sentence.substr(at + kWord.size());
    absl::ConsumePrefix(&rest, "s");
    if (!absl::ConsumePrefix(&rest, " ")) continue;
    const std::optional<EventIndex> first = TakeNumber(rest);
    if (!first.has_value()) continue;
    out.push_back(*first);
    if (!absl::ConsumePrefix(&rest, " to ") && !absl::ConsumePrefix(&rest, " and ")) continue;
    if (const std::optional<EventIndex> second = TakeNumber(rest); second.has_value()) out.push_back(*second);
  }
}

std::vector<EventIndex> NamedEvents(const Explanation& explanation) {
  std::vector<EventIndex> out;
  AddNamedEvents(explanation.verdict.headline, out);
  AddNamedEvents(explanation.memory.moment, out);
  for (const std::string& sentence : explanation.verdict.evidence) AddNamedEvents(sentence, out);
  for (const ExplainedCause& cause : explanation.why.causes) {
    for (const std::string& sentence : cause.finding.evidence) AddNamedEvents(sentence, out);
    for (const std::string& sentence : cause.finding.counter_evidence) AddNamedEvents(sentence, out);
  }
  for (const PinLine& line : explanation.memory.pins.lines) {
    if (line.oldest_event.has_value()) out.push_back(static_cast<EventIndex>(*line.oldest_event));
  }
  if (explanation.failure.recorded.has_value()) out.push_back(explanation.failure.recorded->request.event);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace ashlar::answers
