#include "analyzer/report/layout.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "analyzer/report/printable.h"

namespace ashlar::report {

void AppendWrapped(const std::string& text, std::size_t indent, std::string& out) {
  std::size_t column = indent;
  bool is_first = true;
  for (const absl::string_view whole_word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::string word = Shortened(Printable(std::string(whole_word)), kTextWidth);
    if (!is_first && column + 1 + word.size() > kTextWidth) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
      column = indent;
      is_first = true;
    }
    absl::StrAppend(&out, is_first ? "" : " ", word);
    column += word.size() + (is_first ? 0 : 1);
    is_first = false;
  }
  out += "\n";
}

void AppendSection(absl::string_view title, absl::string_view remark, std::string& out) {
  absl::StrAppend(&out, "\n", title);
  if (!remark.empty()) absl::StrAppend(&out, "   (", remark, ")");
  out += "\n";
}

}  // namespace ashlar::report
