// Lays out sections of text for a terminal, the same in every report.
#ifndef ASHLAR_ANALYZER_REPORT_LAYOUT_H_
#define ASHLAR_ANALYZER_REPORT_LAYOUT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace ashlar::report {

inline constexpr std::size_t kTextWidth = 100;

// Words up to kTextWidth columns, further lines indented by `indent`; the caller has indented the first. Ends the line.
void AppendWrapped(const std::string& text, std::size_t indent, std::string& out);

// An empty line, the title, and the remark in brackets if there is one.
void AppendSection(absl::string_view title, absl::string_view remark, std::string& out);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_LAYOUT_H_
