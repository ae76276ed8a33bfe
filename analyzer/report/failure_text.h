// The sections of an explanation's text about a failed request and about what pins segments; nothing where there is
// nothing to say.
//
//   AppendFailure(explanation.failure, text);
#ifndef ASHLAR_ANALYZER_REPORT_FAILURE_TEXT_H_
#define ASHLAR_ANALYZER_REPORT_FAILURE_TEXT_H_

#include <optional>
#include <string>

#include "analyzer/answers/failure_lines.h"

namespace ashlar::report {

void AppendFailure(const std::optional<answers::FailureLines>& failure, std::string& out);
void AppendPins(const answers::PinLines& pins, std::string& out);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_FAILURE_TEXT_H_
