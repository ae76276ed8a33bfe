// The JSON schemas of answers, which `ashlar schema` prints: those that are made of an answer's fields
// (commands/shared/fields.h), and the documents kept of the others.
//
//   std::optional<std::string> schema = SchemaNamed("check");   // nullopt: there is none
#ifndef ASHLAR_COMMANDS_DOCUMENTS_SCHEMAS_H_
#define ASHLAR_COMMANDS_DOCUMENTS_SCHEMAS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::cli {

std::vector<std::string> SchemaNames();  // in their order
std::optional<std::string> SchemaNamed(absl::string_view name);

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_DOCUMENTS_SCHEMAS_H_
