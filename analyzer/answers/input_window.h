// A part of an input, as an input of its own (timeline/window.h).
//
//   absl::StatusOr<Input> part = CutInput(*LoadInput(bytes), *timeline::ParseWindow("20%:40%"), std::nullopt);
//
// Of a snapshot it is one device: the one asked for, else the one that commands take by themselves. Of a request trace
// it is the requests between the two ends, and before them the allocations of what is live then. What the replay of a
// part shows is therefore what it shows within the whole, but for a request trace's cache, which begins empty.
#ifndef ASHLAR_ANALYZER_ANSWERS_INPUT_WINDOW_H_
#define ASHLAR_ANALYZER_ANSWERS_INPUT_WINDOW_H_

#include <optional>

#include "absl/status/statusor.h"
#include "allocator/trace/request.h"
#include "analyzer/answers/input.h"
#include "analyzer/timeline/window.h"

namespace ashlar::answers {

// OutOfRange where the window does not go with the input.
absl::StatusOr<Input> CutInput(Input input, const timeline::AskedWindow& window, std::optional<int> device);

// The ids stay as they are.
absl::StatusOr<trace::RequestTrace> CutRequests(const trace::RequestTrace& requests,
                                                const timeline::AskedWindow& window);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_INPUT_WINDOW_H_
