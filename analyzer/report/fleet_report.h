// Prints the answer of `ashlar fleet` as text and JSON (docs/schemas/fleet.schema.json).
#ifndef ASHLAR_ANALYZER_REPORT_FLEET_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_FLEET_REPORT_H_

#include <string>

#include "analyzer/answers/fleet.h"

namespace ashlar::report {

std::string ToText(const answers::FleetAnswer& answer);
std::string ToJson(const answers::FleetAnswer& answer);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_FLEET_REPORT_H_
