#include "estimator/run_observer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/core/inspect.h"
#include "allocator/policy/options.h"

namespace ashlar::estimate {

void RequestList::OnEvent(const trace::Event& event, std::uint64_t) {
  // A request that failed was one as well.
  if (event.action == trace::Action::kAlloc || event.action == trace::Action::kOom) {
    const std::uint32_t id = requests_.id_count++;
    requests_.requests.push_back({.bytes = event.size_bytes, .stream = event.stream, .id = id});
    if (event.action == trace::Action::kAlloc) live_[event.address] = id;
  }
  if (event.action != trace::Action::kFreeRequested) return;
  const auto found = live_.find(event.address);
  if (found == live_.end()) return;
  requests_.requests.push_back({.stream = event.stream, .id = found->second, .kind = trace::OpKind::kFree});
  live_.erase(found);
}

std::int64_t RequestList::StepOf(std::uint64_t request) const {
  return std::upper_bound(step_begins_.begin(), step_begins_.end(), request) - step_begins_.begin();
}

namespace {

// Keys that PyTorch's snapshots have had only since after 2.6: from them a reader tells whose rules were at work.
constexpr const char* kLateKeys[] = {"large_segment_size", "max_non_split_rounding_size", "throw_on_cudamalloc_oom"};

bool HasLateKeys(policy::Compat compat) { return policy::IsLate(compat); }

}  // namespace

void RunCapture::OnBegin(const core::CachingAllocator& allocator, const kernels::TensorMemory& memory) {
  allocator_ = &allocator;
  memory_ = &memory;
}

void RunCapture::Mark(const char* stage) {
  snapshot_.annotations.push_back({stage, absl::StrCat("ProfilerStep#", step_), 0, Now()});
}

void RunCapture::OnStep(std::int64_t step) {
  if (step_ > 0) Mark("END");
  step_ = step;
  Mark("START");
}

trace::StackId RunCapture::StackNow(const trace::Event& event) {
  const kernels::Place place = memory_->place();
  std::vector<trace::FrameId> frames;
  const auto add = [&](const std::string& name) {
    if (!name.empty()) frames.push_back(snapshot_.stacks.InternFrame(program_, 0, name));
  };
  add(place.tensor);
  add(place.owner);
  add(place.operation);
  add(place.module);
  if (event.action == trace::Action::kAlloc || event.action == trace::Action::kOom) {
    add(std::string(kernels::PartName(memory_->requested_part())));
  }
  add(place.phase);
  return frames.empty() ? trace::kNoStack : snapshot_.stacks.InternStack(frames);
}

void RunCapture::OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) {
  const std::int64_t now = Now();
  events_.push_back(event);
  events_.back().block_size_bytes = block_size_bytes;
  events_.back().time_us = now;
  events_.back().stack = StackNow(event);
}

void RunCapture::OnFact(const trace::AnyFact& fact) { facts_.push_back({fact, events_.size()}); }

void RunCapture::OnEnd() {
  if (step_ > 0) Mark("END");
  trace::Snapshot head;
  const core::Inspection inspection(*allocator_);
  inspection.WhileStill([&] {
    head = inspection.HeadNow(0);
    head.segments = inspection.SegmentsNow();
    head.recording->reservations = inspection.ReservationsNow();
    head.recording->start.emplace().has_segments = true;  // of an empty allocator
  });
  if (!HasLateKeys(allocator_->options().compat)) {
    for (const char* key : kLateKeys) head.settings->values.erase(key);
  }
  std::map<std::uint64_t, trace::StackId> stack_of;  // of the newest allocation at each address
  for (const trace::Event& event : events_) {
    if (event.action == trace::Action::kAlloc) stack_of[event.address] = event.stack;
  }
  for (trace::SnapshotSegment& segment : head.segments) {
    for (trace::SnapshotBlock& block : segment.blocks) {
      const auto it = stack_of.find(block.address);
      if (block.state != trace::BlockState::kFree && it != stack_of.end()) block.stack = it->second;
    }
  }
  head.recording->is_complete = true;
  head.recording->facts = std::move(facts_);
  head.device_traces[0] = std::move(events_);
  head.annotations = std::move(snapshot_.annotations);
  head.stacks = std::move(snapshot_.stacks);
  snapshot_ = std::move(head);
}

}  // namespace ashlar::estimate
