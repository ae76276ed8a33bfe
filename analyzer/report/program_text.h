// The section of an explanation's text about the program's steps, at most a few lines; nothing where nothing is known.
//
//   AppendProgram(explanation.program, text);
#ifndef ASHLAR_ANALYZER_REPORT_PROGRAM_TEXT_H_
#define ASHLAR_ANALYZER_REPORT_PROGRAM_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "analyzer/answers/program_view.h"

namespace ashlar::report {

void AppendProgram(const answers::ProgramView& view, std::string& out);

absl::string_view StepSourceName(analyses::StepSource source);  // "none", "annotations", "period"

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PROGRAM_TEXT_H_
