// The Python traceback that a log prints right before an out-of-memory message.
//
//   const std::vector<TracebackLine> lines = TracebackBefore(log, message.byte_offset);
//   lines.back().frame.file;   // the innermost
//
// Prefixes of launchers are taken off, and where they name a rank, lines of other ranks in between are passed over.
// Empty where no traceback ends at the message. Pure function; text is turned into valid UTF-8.
#ifndef ASHLAR_ANALYZER_READERS_OOM_OOM_TRACEBACK_H_
#define ASHLAR_ANALYZER_READERS_OOM_OOM_TRACEBACK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/stack_table.h"

namespace ashlar::readers {

struct TracebackLine {
  trace::Frame frame;
  std::string code;  // the source line as printed; empty where it is not
};

// Outermost first, as Python prints them; the last kMostTracebackLines.
inline constexpr std::size_t kMostTracebackLines = 256;
std::vector<TracebackLine> TracebackBefore(absl::string_view text, std::size_t message_offset);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_OOM_OOM_TRACEBACK_H_
