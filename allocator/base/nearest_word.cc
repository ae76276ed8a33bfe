#include "allocator/base/nearest_word.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ashlar {
namespace {

// Optimal string alignment, row by row: of the first i letters of `a` against the first j of `b`.
std::size_t Edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      const std::size_t replaced = edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> NearestWord(absl::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kLongestWord = 100;  // the work is the product of both lengths
  if (word.size() > kLongestWord) return std::nullopt;
  const std::string wanted = absl::AsciiStrToLower(word);
  std::optional<std::string> nearest;
  std::size_t fewest = wanted.size() / 3 + 2;
  for (const std::string& candidate : known) {
    const std::size_t edits = Edits(wanted, absl::AsciiStrToLower(candidate));
    if (edits >= fewest) continue;
    fewest = edits;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known) {
  const std::optional<std::string> nearest = NearestWord(word, known);
  return nearest.has_value() ? absl::StrCat("did you mean '", *nearest, "'?") : "";
}

}  // namespace ashlar
