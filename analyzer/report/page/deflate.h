// Compresses bytes as one gzip member without name and time: the same bytes in, the same bytes out. Any size; a failure
// is one of memory, and ends the program.
//
//   Deflate(columns)   // what DecompressionStream('gzip') and gunzip read
#ifndef ASHLAR_ANALYZER_REPORT_PAGE_DEFLATE_H_
#define ASHLAR_ANALYZER_REPORT_PAGE_DEFLATE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ashlar::report {

std::string Deflate(absl::string_view bytes);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PAGE_DEFLATE_H_
