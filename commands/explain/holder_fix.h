// The lines of a remedy with the program's own variable in them, where one holds what the remedy is about.
//
//   NamedLines(changes::kNumbersNotTensors.sentence, {.kind = "graph", .name = "losses[]", .container = "list"});
//   // {"losses.append(loss.item())  # or value.detach(); not: losses.append(loss)"}
//
// Pure functions.
#ifndef ASHLAR_COMMANDS_EXPLAIN_HOLDER_FIX_H_
#define ASHLAR_COMMANDS_EXPLAIN_HOLDER_FIX_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/holders.h"

namespace ashlar::answers {

// `sentence`: of the change (changes/program_changes.h). Empty: the change has no line about a variable, or the name is
// none that a program could write there, such as one that stands for several.
std::vector<std::string> NamedLines(absl::string_view sentence, const trace::Holder& holder);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_HOLDER_FIX_H_
