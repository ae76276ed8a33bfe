#include "commands/shared/request_origins.h"

#include <algorithm>
#include <cstddef>

#include "absl/container/flat_hash_map.h"

namespace ashlar::answers {
namespace {

using timeline::EventIndex;

// How many events a request makes, as a rule: a free is asked for, and done.
std::int64_t EventsOf(const trace::Op& op) { return op.kind == trace::OpKind::kFree ? 2 : 1; }

}  // namespace

RequestOrigins RequestOrigins::OfProgram(const replay::SnapshotProgram& program, const timeline::Timeline& observed,
                                         bool is_capacity_known, const analyses::Continuation* next) {
  RequestOrigins out;
  out.observed_ = &observed;
  EventIndex latest = timeline::kBeforeWindow;
  for (const replay::RecordedAnswer& answer : program.answers) {
    if ((is_capacity_known || next != nullptr) && answer.release == replay::Release::kMaybeLadder) continue;
    latest = std::max(latest, std::min<EventIndex>(answer.event, observed.last_event()));
    out.places_.push_back(latest);
  }
  out.AddStartStacks(program);
  if (next != nullptr) out.Project(*next);
  return out;
}

void RequestOrigins::AddStartStacks(const replay::SnapshotProgram& program) {
  absl::flat_hash_map<std::uint32_t, trace::StackId> stack_of_id;
  std::size_t at = 0;
  for (const timeline::StateSegment& segment : program.start.segments) {
    for (const timeline::StateBlock& block : segment.blocks) {
      if (at < program.start_ids.size()) stack_of_id[program.start_ids[at++]] = block.stack;
    }
  }
  for (std::size_t op = 0; op < program.start_count; ++op) {
    const auto found = stack_of_id.find(program.requests.requests[op].id);
    start_stacks_.push_back(found == stack_of_id.end() ? trace::kNoStack : found->second);
  }
}

void RequestOrigins::Project(const analyses::Continuation& next) {
  places_.resize(next.failed + 1);
  projected_from_ = places_.size();
  const absl::Span<const trace::Event> events = observed_->events();
  std::int64_t place = places_.back();
  std::int64_t first_us = trace::kNoTime;
  for (EventIndex i = 0; i <= place; ++i) {
    const std::int64_t time_us = events[static_cast<std::size_t>(i)].time_us;
    if (time_us == trace::kNoTime) continue;
    if (first_us == trace::kNoTime) first_us = time_us;
    last_time_us_ = time_us;
  }
  if (place > 0 && first_us != trace::kNoTime) {
    us_per_place_ = static_cast<double>(last_time_us_ - first_us) / static_cast<double>(place);
  }
  for (std::size_t op = places_.size(); op < next.requests.requests.size(); ++op) {
    places_.push_back(place += EventsOf(next.requests.requests[op]));
  }
}

std::int64_t RequestOrigins::PlaceOf(std::uint64_t op) const {
  return op < places_.size() ? places_[op] : static_cast<std::int64_t>(op);
}

EventIndex RequestOrigins::EventOf(std::uint64_t op) const {
  const bool is_recorded = op < places_.size() && (!projected_from_.has_value() || op < *projected_from_);
  return is_recorded ? places_[op] : timeline::kBeforeWindow;
}

std::int64_t RequestOrigins::TimeOf(std::uint64_t op) const {
  if (projected_from_.has_value() && op >= *projected_from_) {
    if (last_time_us_ == trace::kNoTime) return trace::kNoTime;
    const std::int64_t places = PlaceOf(op) - places_[*projected_from_ - 1];
    return last_time_us_ + static_cast<std::int64_t>(us_per_place_ * static_cast<double>(places));
  }
  const EventIndex event = EventOf(op);
  return event < 0 ? trace::kNoTime : observed_->events()[static_cast<std::size_t>(event)].time_us;
}

trace::StackId RequestOrigins::StackOf(std::uint64_t op) const {
  if (op < start_stacks_.size()) return start_stacks_[op];
  const EventIndex event = EventOf(op);
  return event < 0 ? trace::kNoStack : observed_->events()[static_cast<std::size_t>(event)].stack;
}

}  // namespace ashlar::answers
