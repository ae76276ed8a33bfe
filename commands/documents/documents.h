// The guide, kept in the program: who installed it alone has it too. And the schemas of answers, made of their fields
// (commands/shared/fields.h); those of others are kept as well.
//
//   for (const KeptDocument& page : Guide()) std::cout << page.name << "\n";   // "explain", "my_training_died"
//   const KeptDocument* page = FindDocument(Guide(), "fit");                   // nullptr: there is none
#ifndef ASHLAR_COMMANDS_DOCUMENTS_DOCUMENTS_H_
#define ASHLAR_COMMANDS_DOCUMENTS_DOCUMENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ashlar::cli {

struct KeptDocument {
  absl::string_view name;
  absl::string_view text;
};

absl::Span<const KeptDocument> Guide();        // docs/guide and what else messages name, Markdown, by path
absl::Span<const KeptDocument> CausePages();   // docs/guide/causes, Markdown, by the name of the cause
absl::Span<const KeptDocument> KeptSchemas();  // of docs/schemas those that are not made of fields

const KeptDocument* FindDocument(absl::Span<const KeptDocument> documents, absl::string_view name);
// The first sentence under the page's heading, its links as their words.
std::string FirstSentence(const KeptDocument& page);
std::vector<std::string> NamesOf(absl::Span<const KeptDocument> documents);

std::vector<std::string> SchemaNames();                          // of docs/schemas, in their order
std::optional<std::string> SchemaNamed(absl::string_view name);  // "check"; nullopt: there is none

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_DOCUMENTS_DOCUMENTS_H_
