// An explanation as text for one screen: what happened, the verdict, where the memory went, who holds it, what would
// have helped, the line to paste. The same numbers as the JSON.
#ifndef ASHLAR_ANALYZER_REPORT_TEXT_H_
#define ASHLAR_ANALYZER_REPORT_TEXT_H_

#include <string>

#include "analyzer/answers/explanation.h"

namespace ashlar::report {

std::string ToText(const answers::Explanation& explanation);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_TEXT_H_
