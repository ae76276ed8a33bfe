// What reports in Markdown have in common.
#ifndef ASHLAR_COMMANDS_SHARED_MARKDOWN_H_
#define ASHLAR_COMMANDS_SHARED_MARKDOWN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::report {

// Text as it is: what Markdown or HTML would read otherwise is escaped, and line ends become blanks.
//
//   "a|b <c>"  ->  "a\|b \<c\>"
std::string MarkdownText(absl::string_view text);

using MarkdownCells = std::vector<std::string>;

// Nothing where there are no rows. `marks`: the line below the heads, "---:" for a column of figures.
void AppendMarkdownTable(absl::string_view title, absl::string_view remark, const MarkdownCells& heads,
                         const MarkdownCells& marks, const std::vector<MarkdownCells>& rows, std::string& out);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_SHARED_MARKDOWN_H_
