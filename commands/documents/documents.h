// The guide and the schemas, kept in the program: who installed it alone has them too.
//
//   for (const Document& page : Guide()) std::cout << page.name << "\n";   // "explain", "my_training_died"
//   const Document* schema = FindDocument(Schemas(), "diff");              // nullptr: there is none
#ifndef ASHLAR_COMMANDS_DOCUMENTS_DOCUMENTS_H_
#define ASHLAR_COMMANDS_DOCUMENTS_DOCUMENTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ashlar::cli {

struct Document {
  absl::string_view name;
  absl::string_view text;
};

absl::Span<const Document> Guide();    // docs/guide, Markdown, by name
absl::Span<const Document> Schemas();  // docs/schemas, JSON, by name

const Document* FindDocument(absl::Span<const Document> documents, absl::string_view name);
// The first sentence under the page's heading, its links as their words.
std::string FirstSentence(const Document& page);
std::vector<std::string> NamesOf(absl::Span<const Document> documents);

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_DOCUMENTS_DOCUMENTS_H_
