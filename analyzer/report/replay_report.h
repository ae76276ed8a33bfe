// Prints the answer of `ashlar replay`, as text or JSON. The JSON's keys are those of the golden files' index, so that
// the two can be compared key by key (docs/guide/replay.md).
//
//   std::cout << ToJson(*Replay(input, settings, {}));
#ifndef ASHLAR_ANALYZER_REPORT_REPLAY_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_REPLAY_REPORT_H_

#include <string>

#include "analyzer/answers/replay.h"

namespace ashlar::report {

std::string ToText(const answers::ReplayAnswer& report);
std::string ToJson(const answers::ReplayAnswer& report);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_REPLAY_REPORT_H_
