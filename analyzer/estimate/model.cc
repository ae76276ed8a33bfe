#include "analyzer/estimate/model.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace ashlar::estimate {

std::int64_t ModelParameter::count() const {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) out *= size;
  return out;
}

std::int64_t Model::count() const {
  std::int64_t out = 0;
  for (const ModelParameter& parameter : parameters) out += parameter.count();
  return out;
}

std::string LayerOf(absl::string_view parameter_name) {
  std::vector<std::string> parts = absl::StrSplit(parameter_name, '.');
  const auto is_number = [](const std::string& part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
  };
  const auto number = std::find_if(parts.begin(), parts.end(), is_number);
  if (number != parts.end()) return absl::StrJoin(parts.begin(), number + 1, ".");
  if (parts.size() > 1) parts.pop_back();
  if (parts.size() > 2) parts.pop_back();
  return absl::StrJoin(parts, ".");
}

bool IsEmbedding(const ModelParameter& parameter) {
  if (parameter.sizes.size() != 2) return false;
  for (const absl::string_view word : {"embed", "wte", "wpe", "shared"}) {
    if (absl::StrContains(parameter.name, word)) return true;
  }
  return false;
}

}  // namespace ashlar::estimate
