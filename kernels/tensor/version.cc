#include "kernels/tensor/version.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace ashlar::kernels {

std::optional<Version> VersionOf(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  std::array<int, 3> numbers = {};
  if (parts.size() < 2 || parts.size() > numbers.size()) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!std::all_of(parts[i].begin(), parts[i].end(), absl::ascii_isdigit)) return std::nullopt;
    if (!absl::SimpleAtoi(parts[i], &numbers[i])) return std::nullopt;
  }
  return Version{numbers[0], numbers[1]};
}

}  // namespace ashlar::kernels
