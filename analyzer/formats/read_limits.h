// What a reader holds of an input that is longer than memory is.
#ifndef ASHLAR_ANALYZER_FORMATS_READ_LIMITS_H_
#define ASHLAR_ANALYZER_FORMATS_READ_LIMITS_H_

#include <cstdint>

namespace ashlar::formats {

struct ReadLimits {
  // Of each device the last events, as many as this; those before are summed (trace::TraceWindow; its allocated peak is
  // by what was requested). A recording and a log are cut between two requests, and of a request trace as many requests
  // are held as make so many events, behind what was alive then (trace/request_window.h). 0: all. Packing problems are
  // held whole.
  std::uint64_t max_events = 0;
};

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_READ_LIMITS_H_
