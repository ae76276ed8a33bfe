// One segment event, done forwards to an occupancy picture: the step a placement pass and a timeline share.
#ifndef ASHLAR_ANALYZER_TIMELINE_SEGMENT_STEP_H_
#define ASHLAR_ANALYZER_TIMELINE_SEGMENT_STEP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "allocator/trace/event.h"
#include "analyzer/timeline/event_facts.h"
#include "analyzer/timeline/occupancy.h"

namespace ashlar::timeline {

bool IsSegmentEvent(trace::Action action);

// `new_id` names the segment that the event makes: the new one, or the upper rest of a range that an unmap cuts in
// two. The status says what was expected and what was found, without naming the event.
absl::Status ApplySegmentEvent(const trace::Event& event, const EventFacts& facts, std::uint32_t new_id,
                               Occupancy& picture);

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_SEGMENT_STEP_H_
