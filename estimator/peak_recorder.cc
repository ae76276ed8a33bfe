#include "estimator/peak_recorder.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ashlar::estimate {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr char kBetweenSteps[] = "between steps";

}  // namespace

void PeakRecorder::BeginStep(std::int64_t step) {
  EndStep();
  step_ = step;
  if (observer_ != nullptr) observer_->OnStep(step);
}

void PeakRecorder::End() {
  EndStep();
  is_over_ = true;
  if (observer_ != nullptr) observer_->OnEnd();
}

// What a step leaves is known where it frees nothing in the end, too.
void PeakRecorder::EndStep() {
  if (memory_.phase() != kBetweenSteps) return;
  EnterPhase();
  SetMoment(0);
}

void PeakRecorder::OnFact(const trace::AnyFact& fact) {
  if (observer_ != nullptr && !is_over_) observer_->OnFact(fact);
}

void PeakRecorder::OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) {
  if (is_over_) return;
  if (observer_ != nullptr) observer_->OnEvent(event, block_size_bytes);
  EnterPhase();
  switch (event.action) {
    case trace::Action::kAlloc:
      OnAllocate(event);
      SetMoment(event.size_bytes);
      break;
    case trace::Action::kFreeRequested:
      OnFree(event);
      SetMoment(0);
      break;
    case trace::Action::kSegmentAlloc:
    case trace::Action::kSegmentMap:
      reserved_bytes_ += event.size_bytes;
      break;
    case trace::Action::kSegmentFree:
    case trace::Action::kSegmentUnmap:
      reserved_bytes_ -= event.size_bytes;
      break;
    default:
      break;
  }
  if (event.action == trace::Action::kOom && !failed_) {
    failed_ = true;
    SetPeak(event.size_bytes, event.address);
  }
}

// The step's phase of the memory's, a new one where the step has none of that name yet.
void PeakRecorder::EnterPhase() {
  if (memory_.phase() != phase_) {
    phase_ = std::string(memory_.phase());
    ++phase_number_;
  } else if (!phases_.empty() && phases_[now_].step == step_) {
    return;
  }
  for (now_ = phases_.size(); now_ > 0 && phases_[now_ - 1].step == step_; --now_) {
    if (phases_[now_ - 1].phase == phase_) {
      --now_;
      return;
    }
  }
  now_ = phases_.size();
  phases_.push_back({.step = step_, .phase = phase_});
}

// The memory counts a request when the allocator has served it, after this; a free before.
void PeakRecorder::SetMoment(std::uint64_t request_bytes) {
  PhaseMoment& moment = phases_[now_];
  const std::uint64_t live_bytes = memory_.live_bytes() + request_bytes;
  if (live_bytes <= moment.live_bytes && phase_ != kBetweenSteps) return;
  moment.event = event_;
  moment.live = memory_.live_by_part();
  moment.live[static_cast<std::size_t>(memory_.requested_part())] += request_bytes;
  moment.live_bytes = live_bytes;
  moment.reserved_bytes = reserved_bytes_;
}

void PeakRecorder::SetPeak(std::uint64_t request_bytes, std::uint64_t device_free_bytes) {
  peak_ = {event_, request_bytes, step_, memory_.place(), device_free_bytes};
}

void PeakRecorder::OnAllocate(const trace::Event& event) {
  ++event_;
  live_[event.address] = blocks_.size();
  const bool is_of_forward = memory_.requested_part() == kernels::Part::kActivations && phase_ == "forward";
  blocks_.push_back(
      {event.size_bytes, event_, kNever, phase_number_, std::numeric_limits<std::uint32_t>::max(), is_of_forward});
  live_bytes_ += event.size_bytes;
  if (failed_ || live_bytes_ <= peak_bytes_) return;
  peak_bytes_ = live_bytes_;
  SetPeak(event.size_bytes, 0);
}

void PeakRecorder::OnFree(const trace::Event& event) {
  ++event_;
  const auto found = live_.find(event.address);
  if (found == live_.end()) return;
  Block& block = blocks_[found->second];
  block.died = event_;
  block.died_phase = phase_number_;
  live_bytes_ -= block.size_bytes;
  live_.erase(found);
}

std::vector<std::uint64_t> PeakRecorder::SavedBytesAt(const std::vector<std::uint64_t>& events) const {
  // What comes at an event and goes at a later one; the sums up to each are its bytes, modulo 2^64 on the way.
  std::vector<std::uint64_t> out(events.size() + 1);
  const auto from = [&](std::uint64_t event) {
    return static_cast<std::size_t>(std::lower_bound(events.begin(), events.end(), event) - events.begin());
  };
  for (const Block& block : blocks_) {
    if (!block.is_of_forward || block.died_phase == block.born_phase) continue;
    out[from(block.born)] += block.size_bytes;
    out[from(block.died)] -= block.size_bytes;
  }
  std::partial_sum(out.begin(), out.end(), out.begin());
  out.pop_back();
  return out;
}

std::uint64_t PeakRecorder::SavedBytesAtPeak() const { return SavedBytesAt({peak_.event})[0]; }

std::vector<PhaseMoment> PeakRecorder::Phases() const {
  std::vector<PhaseMoment> out = phases_;
  std::vector<std::uint64_t> events;
  for (const PhaseMoment& moment : out) events.push_back(moment.event);
  std::sort(events.begin(), events.end());
  const std::vector<std::uint64_t> saved = SavedBytesAt(events);
  for (PhaseMoment& moment : out) {
    const auto at = std::lower_bound(events.begin(), events.end(), moment.event) - events.begin();
    moment.saved_bytes = saved[static_cast<std::size_t>(at)];
  }
  return out;
}

}  // namespace ashlar::estimate
