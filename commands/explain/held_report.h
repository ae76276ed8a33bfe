// The part of an explanation's JSON that says who holds the memory, by name; null where the input has no names.
#ifndef ASHLAR_COMMANDS_EXPLAIN_HELD_REPORT_H_
#define ASHLAR_COMMANDS_EXPLAIN_HELD_REPORT_H_

#include <optional>

#include "analyzer/analyses/holders/held_by_name.h"
#include "commands/shared/json_values.h"

namespace ashlar::report {

Json HeldJson(const std::optional<analyses::HeldByName>& held);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_EXPLAIN_HELD_REPORT_H_
