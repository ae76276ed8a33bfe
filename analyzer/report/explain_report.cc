#include "analyzer/report/explain_report.h"

#include "analyzer/report/json.h"
#include "analyzer/report/text.h"

namespace ashlar::report {

std::string PrintExplanations(const std::vector<answers::Explanation>& explanations, bool as_json) {
  if (as_json) return ToJson(explanations);
  std::string out;
  for (const answers::Explanation& explanation : explanations) {
    if (!out.empty()) out += "\n";
    out += ToText(explanation);
  }
  return out;
}

}  // namespace ashlar::report
