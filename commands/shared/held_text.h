// Who holds the memory, by its name in the program, as a person would say it.
//
//   HolderText(holder);   // "losses[] (graph of 5,516 nodes) in leaks.py:18 history_of_losses"
#ifndef ASHLAR_COMMANDS_SHARED_HELD_TEXT_H_
#define ASHLAR_COMMANDS_SHARED_HELD_TEXT_H_

#include <optional>
#include <string>

#include "allocator/trace/holders.h"
#include "analyzer/analyses/holders/held_by_name.h"

namespace ashlar::report {

std::string HolderText(const trace::Holder& holder);
// ", 63.4 MiB a step since step 2"; empty where it does not grow.
std::string GrowthText(const std::optional<analyses::HolderGrowth>& growth);

// The section WHO HOLDS IT; nothing where the input has no names.
void AppendHeld(const std::optional<analyses::HeldByName>& held, std::string& out);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_SHARED_HELD_TEXT_H_
