// The one sentence for records that contradict each other: which event, what it asks, what was found instead.
#ifndef ASHLAR_ANALYZER_TIMELINE_DISAGREEMENT_H_
#define ASHLAR_ANALYZER_TIMELINE_DISAGREEMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/event.h"

namespace ashlar::timeline {

// "0x7f0000000200"
std::string FormatAddress(std::uint64_t address);

// FailedPrecondition: "device 0, event 12 at byte 3456 (alloc of 512 B at 0x7f0000000200): <what>"; the byte where
// the event has one.
absl::Status Disagreement(int device, std::int64_t event_index, const trace::Event& event, absl::string_view what);

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_DISAGREEMENT_H_
