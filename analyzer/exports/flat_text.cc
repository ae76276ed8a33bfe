#include "analyzer/exports/flat_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::exports {

void AppendJsonText(absl::string_view text, std::string& out) {
  const std::string valid = readers::ToUtf8(text);
  out += '"';
  for (const char c : valid) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendCsvText(absl::string_view text, std::string& out) {
  const std::string valid = readers::ToUtf8(text);
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
