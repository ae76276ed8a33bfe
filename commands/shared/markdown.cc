#include "commands/shared/markdown.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands/shared/layout.h"

namespace ashlar::report {
namespace {

void AppendCells(const MarkdownCells& cells, std::string& out) {
  absl::StrAppend(&out, "| ", absl::StrJoin(cells, " | "), " |\n");
}

}  // namespace

std::string MarkdownText(absl::string_view text) {
  std::string out;
  for (const char c : Printable(text)) {
    if (absl::StrContains("\\`*_[]<>|#~", absl::string_view(&c, 1))) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

void AppendMarkdownTable(absl::string_view title, absl::string_view remark, const MarkdownCells& heads,
                         const MarkdownCells& marks, const std::vector<MarkdownCells>& rows, std::string& out) {
  if (rows.empty()) return;
  absl::StrAppend(&out, "\n**", title, "**", remark, "\n\n");
  AppendCells(heads, out);
  AppendCells(marks, out);
  for (const MarkdownCells& row : rows) AppendCells(row, out);
}

}  // namespace ashlar::report
