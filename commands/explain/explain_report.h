// All explanations of one input.
//
//   std::cout << PrintExplanations(*answers::ExplainBytes(bytes, {}), /*as_json=*/false);
#ifndef ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_REPORT_H_
#define ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "commands/explain/explanation.h"
#include "commands/shared/json_values.h"

namespace ashlar::report {

// As text, a blank line between two, or as JSON: one value for one explanation, else a list; `as_list`: always a list.
std::string PrintExplanations(const std::vector<answers::Explanation>& explanations, bool as_json,
                              bool as_list = false);
// As text, and of each no more than the verdict, what to do, where the memory went and why.
std::string PrintBriefly(const std::vector<answers::Explanation>& explanations);

// An explanation as text for one screen: what happened, the verdict, where the memory went, who holds it, what would
// have helped, the line to paste. The same numbers as the JSON.

std::string ToText(const answers::Explanation& explanation);
// What to do, as FIX where something speaks for it and else TRY FIRST: a line that stands alone is to paste, and what
// speaks for it follows; lines to write into the program are those of the first change.
void AppendActions(const answers::Explanation& explanation, std::string& out);
// Its first sections: the verdict, what to do, where the memory went, why.
std::string ToBriefText(const answers::Explanation& explanation);

// Explanations as JSON, one as an object, several (messages of one log) as an array. What is not known is
// null.

// One, to be put into a larger document.
Json ExplanationJson(const answers::Explanation& explanation);

// Two-space indentation, keys in a fixed order, a newline at the end. One value, or a list where there are several or
// `as_list` asks for one.
std::string ToJson(const std::vector<answers::Explanation>& explanations, bool as_list = false);
std::string ExplainSchema();  // docs/schemas/explain.schema.json

// An explanation as Markdown, to paste into an issue: tables of what a reader asks first, the line to paste in a code
// fence, the notes folded. The same numbers as the text and the JSON; looks right on GitHub, whatever a file's names
// hold.

// One after the other, a rule between two.
std::string ToMarkdown(const std::vector<answers::Explanation>& explanations);

// The sections of an explanation's text about a failed request and about what pins segments; nothing where there is
// nothing to say.
//
//   AppendFailure(explanation.failure.recorded, text);

void AppendFailure(const std::optional<answers::FailureLines>& failure, std::string& out);
void AppendPins(const answers::PinLines& pins, std::string& out);

// The section of an explanation's text about the program's steps, at most a few lines; nothing where nothing is known.
//
//   AppendProgram(explanation.program, text);

void AppendProgram(const answers::ProgramView& view, std::string& out);

absl::string_view StepSourceName(analyses::StepSource source);  // "none", "annotations", "period"

// What a row of a what-if says of the requests that would have come after the one that failed.
//
//   ProjectedText(row)   // "gets past; fails 1 request on: needs 20.90 GiB"

// Empty where the row does not get past the failed request, or none failed.
std::string ProjectedText(const whatif::WhatIfRow& row);
// How the row ends, as text and Markdown have it: that, "2 OOM", "fits"; empty where the capacity is not known.
std::string WhatIfOutcome(const whatif::WhatIfRow& row);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_REPORT_H_
