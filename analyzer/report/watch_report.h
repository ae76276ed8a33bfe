// Prints the answer of `ashlar watch`: a block of lines for a terminal, one line for a log, or JSON
// (docs/schemas/watch.schema.json).
//
//   std::cout << ToText(*file->Look(), 80);
#ifndef ASHLAR_ANALYZER_REPORT_WATCH_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_WATCH_REPORT_H_

#include <cstddef>
#include <string>

#include "analyzer/answers/watch.h"

namespace ashlar::report {

inline constexpr std::size_t kLeastWatchWidth = 28;  // columns; a narrower terminal cuts the lines

// Every line fits in `width` columns.
std::string ToText(const answers::WatchAnswer& answer, std::size_t width);
// Ends the line. Times are since the recording's first event.
std::string ToLine(const answers::WatchAnswer& answer);
std::string ToJson(const answers::WatchAnswer& answer);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_WATCH_REPORT_H_
