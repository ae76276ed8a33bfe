// The guide and the schemas, kept in the program: who installed it alone has them too.
//
//   for (const KeptDocument& page : Guide()) std::cout << page.name << "\n";   // "explain", "my_training_died"
//   const KeptDocument* schema = FindDocument(Schemas(), "diff");              // nullptr: there is none
#ifndef ASHLAR_COMMANDS_DOCUMENTS_DOCUMENTS_H_
#define ASHLAR_COMMANDS_DOCUMENTS_DOCUMENTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ashlar::cli {

struct KeptDocument {
  absl::string_view name;
  absl::string_view text;
};

absl::Span<const KeptDocument> Guide();       // docs/guide, Markdown, by name
absl::Span<const KeptDocument> CausePages();  // docs/guide/causes, Markdown, by the name of the cause
absl::Span<const KeptDocument> Schemas();     // docs/schemas, JSON, by name

const KeptDocument* FindDocument(absl::Span<const KeptDocument> documents, absl::string_view name);
// The first sentence under the page's heading, its links as their words.
std::string FirstSentence(const KeptDocument& page);
std::vector<std::string> NamesOf(absl::Span<const KeptDocument> documents);

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_DOCUMENTS_DOCUMENTS_H_
