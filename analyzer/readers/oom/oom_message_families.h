// The family parsers behind FindOomMessages: each knows the words that give its messages away (anchors) and reads one
// message at an anchor. Private to the reader.
#ifndef ASHLAR_ANALYZER_READERS_OOM_OOM_MESSAGE_FAMILIES_H_
#define ASHLAR_ANALYZER_READERS_OOM_OOM_MESSAGE_FAMILIES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "analyzer/readers/oom/oom_message.h"
#include "analyzer/readers/oom/oom_message_text.h"

namespace ashlar::readers::oom {

// One message found, in positions of the squeezed text: [begin, end).
struct Finding {
  OomMessage message;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// A message of a family that begins and, so far, ends at `at`.
inline Finding Begin(absl::string_view family, std::size_t at) {
  Finding out;
  out.message.family = std::string(family);
  out.begin = out.end = at;
  return out;
}

// Reads the message whose anchor begins at `at`; nullopt when the words there are no message.
using Parser = std::optional<Finding> (*)(const SqueezedText& text, std::size_t at);

struct Anchor {
  absl::string_view words;  // squeezed
  Parser parse;
};

// In order of preference where two begin at the same place.
const std::vector<Anchor>& OurAnchors();
const std::vector<Anchor>& TorchAnchors();
const std::vector<Anchor>& FrameworkAnchors();
const std::vector<Anchor>& LibraryAnchors();

// Joins what belongs to one failure: an allocator's warnings to the message they announce, a pool's statistics to the
// message before them.
void JoinFindings(std::vector<OomMessage>& messages);

}  // namespace ashlar::readers::oom

#endif  // ASHLAR_ANALYZER_READERS_OOM_OOM_MESSAGE_FAMILIES_H_
