// The parts of an explanation's text and Markdown that say who holds the memory, by name; nothing where the input
// has no names.
//
//   AppendHeld(explanation.memory.holders.names, text);
#ifndef ASHLAR_COMMANDS_EXPLAIN_HELD_REPORT_H_
#define ASHLAR_COMMANDS_EXPLAIN_HELD_REPORT_H_

#include <optional>
#include <string>

#include "analyzer/analyses/holders/held_by_name.h"

namespace ashlar::report {

// "losses[] (graph of 5,516 nodes) in leaks.py:18 history_of_losses".
std::string HolderText(const trace::Holder& holder);
// ", 63.4 MiB a step since step 2"; empty where it does not grow.
std::string GrowthText(const std::optional<analyses::HolderGrowth>& growth);

void AppendHeld(const std::optional<analyses::HeldByName>& held, std::string& out);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_EXPLAIN_HELD_REPORT_H_
