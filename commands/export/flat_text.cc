#include "commands/export/flat_text.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::exports {
namespace {

bool IsNumber(absl::string_view text) {
  double ignored = 0;
  return text.find_first_not_of("0123456789+-.eE") == absl::string_view::npos && absl::SimpleAtod(text, &ignored);
}

// A spreadsheet would work it out; some pass over white space before it.
bool IsFormula(absl::string_view text) {
  const absl::string_view words = absl::StripLeadingAsciiWhitespace(text);
  return !words.empty() && absl::StrContains("=+-@", words.substr(0, 1)) && !IsNumber(text);
}

// Line ends stay as they are: a quoted cell may have them.
std::string PrintableLines(absl::string_view text) {
  const auto line = [](std::string* out, absl::string_view part) { *out += formats::ToPrintable(part); };
  const auto lines = [&line](std::string* out, absl::string_view part) {
    *out += absl::StrJoin(absl::StrSplit(part, '\n'), "\n", line);
  };
  return absl::StrJoin(absl::StrSplit(text, "\r\n"), "\r\n", lines);
}

}  // namespace

void AppendJsonText(absl::string_view text, std::string& out) {
  const std::string valid = formats::ToUtf8(text);
  out += '"';
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const auto c = static_cast<unsigned char>(valid[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += valid[i];
    } else if (c < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else if (c == 0xc2 && static_cast<unsigned char>(valid[i + 1]) < 0xa0) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(valid[++i])));
    } else {
      out += valid[i];
    }
  }
  out += '"';
}

void AppendCsvText(absl::string_view text, std::string& out) {
  const std::string valid = absl::StrCat(IsFormula(text) ? "'" : "", PrintableLines(text));
  if (valid.find_first_of(",\"\r\n") == std::string::npos) {
    out += valid;
    return;
  }
  out += '"';
  for (const char c : valid) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::string FrameText(const trace::Frame& frame) {
  const std::string& name = frame.function;
  if (frame.file.empty() || frame.file == trace::kScopeFile) return name.empty() ? "unknown" : name;
  if (frame.line < 0) return absl::StrCat(name, name.empty() ? "" : " ", "(", frame.file, ")");
  return absl::StrCat(name, name.empty() ? "" : " ", "(", frame.file, ":", frame.line, ")");
}

}  // namespace ashlar::exports
