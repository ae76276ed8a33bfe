#include "analyzer/report/explain_report.h"

#include "absl/strings/ascii.h"
#include "analyzer/report/json.h"
#include "analyzer/report/layout.h"
#include "analyzer/report/text.h"

namespace ashlar::report {
namespace {

std::vector<std::string> LinesToPaste(const answers::Explanation& explanation) {
  std::vector<std::string> out = explanation.next_lines;
  for (const remedies::ProgramRemedy& remedy : explanation.program_remedies) {
    for (const std::string& line : remedy.python) out.push_back(std::string(absl::StripLeadingAsciiWhitespace(line)));
  }
  return out;
}

}  // namespace

std::string PrintExplanations(const std::vector<answers::Explanation>& explanations, bool as_json, bool as_list) {
  if (as_json) return ToJson(explanations, as_list);
  std::string out;
  for (const answers::Explanation& explanation : explanations) {
    if (!out.empty()) out += "\n";
    out += Fitted(ToText(explanation), LinesToPaste(explanation));
  }
  return out;
}

}  // namespace ashlar::report
