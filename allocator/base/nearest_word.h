// The known word that a mistyped one most likely meant.
//
//   NearestWord("capacty", {"capacity", "conf"})                       // "capacity"
//   DidYouMean("explian", {"explain", "replay"})                       // "did you mean 'explain'?"
#ifndef ASHLAR_ALLOCATOR_BASE_NEAREST_WORD_H_
#define ASHLAR_ALLOCATOR_BASE_NEAREST_WORD_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar {

// Of the fewest edits: one inserts, deletes, replaces or swaps with its neighbour a letter, whose case does not count.
// Nothing where more than a third of the word, and one edit more, would have to change. Of equals the first.
std::optional<std::string> NearestWord(absl::string_view word, const std::vector<std::string>& known);

// The same as a question; "" where nothing is near.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known);

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_NEAREST_WORD_H_
