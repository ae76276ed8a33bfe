// Shares tasks out: each place gets the next one as soon as it is done with its last, so that nobody is idle while
// there is work. A task whose worker was lost is given out once more, after all others; lost again, it is given up.
//
//   ShareEvents events;
//   events.done = [](std::size_t task, const std::string& result) { ... };
//   absl::Status status = ShareOut(tasks, places, events);
//
// Results come in any order; one of a task that its place does not do now is passed over. One thread.
#ifndef ASHLAR_ANALYZER_FLEET_SHARE_H_
#define ASHLAR_ANALYZER_FLEET_SHARE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "analyzer/fleet/places.h"

namespace ashlar::fleet {

struct ShareEvents {
  // What a place gets of a task.
  std::function<std::string(std::size_t task, std::size_t place)> text;
  std::function<void(std::size_t task, const std::string& result)> done;
  // A worker was lost in it. `is_given_up`: for the second time.
  std::function<void(std::size_t task, std::size_t place, const std::string& how, bool is_given_up)> lost;
};

// The tasks 0 to count - 1, in this order. Unavailable when no place is left to do them.
absl::Status ShareOut(std::size_t count, Places& places, const ShareEvents& events);

}  // namespace ashlar::fleet

#endif  // ASHLAR_ANALYZER_FLEET_SHARE_H_
