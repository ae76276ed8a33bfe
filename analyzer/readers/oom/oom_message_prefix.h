// Takes away what loggers and launchers put before every line, so that a message they broke over lines reads in one
// piece:
//
//   [rank0]: GPU 0 has a total          (RayWorker pid=12) GPU 0 has       2024-06-13 10:22:33,104 ERROR GPU 0 has
//   ERROR 06-13 10:22:33 engine.py:110] GPU 0      [1,0]<stderr>:GPU 0     worker-1  | GPU 0       3: GPU 0
//
// Private to the reader of out-of-memory messages.
#ifndef ASHLAR_ANALYZER_READERS_OOM_OOM_MESSAGE_PREFIX_H_
#define ASHLAR_ANALYZER_READERS_OOM_OOM_MESSAGE_PREFIX_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace ashlar::readers::oom {

// The length of one such piece at the beginning of `line` (which may hold several, one after the other); 0 when there
// is none. Looks at no more than 100 bytes.
std::size_t LinePrefixLength(absl::string_view line);

}  // namespace ashlar::readers::oom

#endif  // ASHLAR_ANALYZER_READERS_OOM_OOM_MESSAGE_PREFIX_H_
