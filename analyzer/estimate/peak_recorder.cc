#include "analyzer/estimate/peak_recorder.h"

#include <limits>

namespace ashlar::estimate {

void PeakRecorder::BeginStep(std::int64_t step) {
  step_ = step;
  if (observer_ != nullptr) observer_->OnStep(step);
}

void PeakRecorder::OnFact(trace::FactKind kind, std::uint64_t bytes, PoolId pool) {
  if (observer_ != nullptr) observer_->OnFact(kind, bytes, pool);
}

void PeakRecorder::OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) {
  if (observer_ != nullptr) observer_->OnEvent(event, block_size_bytes);
  if (memory_.phase() != phase_) {
    phase_ = std::string(memory_.phase());
    ++phase_number_;
  }
  if (event.action == trace::Action::kAlloc) OnAllocate(event);
  if (event.action == trace::Action::kFreeRequested) OnFree(event);
  if (event.action == trace::Action::kOom && !failed_) {
    failed_ = true;
    SetPeak(event.size_bytes, event.address);
  }
}

void PeakRecorder::SetPeak(std::uint64_t request_bytes, std::uint64_t device_free_bytes) {
  peak_ = {event_, request_bytes, step_, memory_.place(), device_free_bytes};
}

void PeakRecorder::OnAllocate(const trace::Event& event) {
  ++event_;
  live_[event.address] = blocks_.size();
  const bool is_of_forward = memory_.requested_part() == kernels::Part::kActivations && phase_ == "forward";
  blocks_.push_back({event.size_bytes, event_, std::numeric_limits<std::uint64_t>::max(), phase_number_,
                     std::numeric_limits<std::uint32_t>::max(), is_of_forward});
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

std::uint64_t PeakRecorder::SavedBytesAtPeak() const {
  std::uint64_t out = 0;
  for (const Block& block : blocks_) {
    const bool is_alive = block.born <= peak_.event && peak_.event < block.died;
    if (is_alive && block.is_of_forward && block.died_phase != block.born_phase) out += block.size_bytes;
  }
  return out;
}

}  // namespace ashlar::estimate
