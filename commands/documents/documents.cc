#include "commands/documents/documents.h"

#include <algorithm>
#include <cstddef>
namespace ashlar::cli {

const KeptDocument* FindDocument(absl::Span<const KeptDocument> documents, absl::string_view name) {
  const auto* const found =
      std::find_if(documents.begin(), documents.end(), [&](const KeptDocument& one) { return one.name == name; });
  return found == documents.end() ? nullptr : found;
}

std::string FirstSentence(const KeptDocument& page) {
  const std::size_t heading = page.text.find("\n\n");
  absl::string_view text = heading == absl::string_view::npos ? page.text : page.text.substr(heading + 2);
  text = text.substr(0, text.find("\n\n"));
  const std::size_t end = std::min(text.find(". "), text.find(".\n"));
  std::string out;
  for (std::size_t i = 0; i < std::min(end, text.size()); ++i) {
    if (text[i] == ']' && text.substr(i + 1, 1) == "(") {
      i = std::min(text.find(')', i), text.size());
    } else if (text[i] != '[') {
      out.push_back(text[i] == '\n' ? ' ' : text[i]);
    }
  }
  return out;
}

std::vector<std::string> NamesOf(absl::Span<const KeptDocument> documents) {
  std::vector<std::string> out;
  for (const KeptDocument& one : documents) out.emplace_back(one.name);
  return out;
}

}  // namespace ashlar::cli
