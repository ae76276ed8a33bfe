// Text from a file made fit for a terminal.
#ifndef ASHLAR_ANALYZER_REPORT_PRINTABLE_H_
#define ASHLAR_ANALYZER_REPORT_PRINTABLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace ashlar::report {

// What a file names may hold anything: control characters, which would reach the terminal, become '?', and so do bytes
// that are no UTF-8.
std::string Printable(absl::string_view text);

// At most `width` bytes, cut between characters of UTF-8.
std::string Shortened(const std::string& text, std::size_t width);

// The same with the middle left out, where the text is longer: the beginning and the end tell more of a label.
//
//   "a_very_long_package_name.py:123 forward"  ->  "a_very_long_p...123 forward"
std::string MiddleCut(const std::string& text, std::size_t width);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PRINTABLE_H_
