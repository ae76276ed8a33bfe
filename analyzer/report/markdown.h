// An explanation as Markdown, to paste into an issue: tables of what a reader asks first, the line to paste in a code
// fence, the notes folded. The same numbers as the text and the JSON; looks right on GitHub, whatever a file's names
// hold.
#ifndef ASHLAR_ANALYZER_REPORT_MARKDOWN_H_
#define ASHLAR_ANALYZER_REPORT_MARKDOWN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "analyzer/answers/explanation.h"

namespace ashlar::report {

// One after the other, a rule between two.
std::string ToMarkdown(const std::vector<answers::Explanation>& explanations);

// Text as it is: what Markdown or HTML would read otherwise is escaped, and line ends become blanks.
//
//   "a|b <c>"  ->  "a\|b \<c\>"
std::string MarkdownText(absl::string_view text);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_MARKDOWN_H_
