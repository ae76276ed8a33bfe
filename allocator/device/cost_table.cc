#include "allocator/device/cost_table.h"

#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ashlar::device {
namespace {

struct Key {
  absl::string_view name;
  std::uint64_t CostModel::*ns;
};
constexpr Key kKeys[] = {
    {"segment_alloc_ns", &CostModel::segment_alloc_ns},
    {"segment_free_ns", &CostModel::segment_free_ns},
    {"map_page_ns", &CostModel::map_page_ns},
    {"unmap_page_ns", &CostModel::unmap_page_ns},
    {"reserve_ns", &CostModel::reserve_ns},
    {"event_ns", &CostModel::event_ns},
};

absl::Status Bad(std::size_t line, absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": '", text, "': ", what));
}

}  // namespace

absl::StatusOr<CostModel> ReadCosts(absl::string_view text) {
  CostModel out;
  std::set<absl::string_view> seen;
  std::size_t number = 0;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    std::uint64_t ns = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[1], &ns)) {
      return Bad(number, line, "write a key and nanoseconds, such as segment_alloc_ns 66000");
    }
    if (!seen.insert(words[0]).second) return Bad(number, line, "the key stands twice; leave one");
    const Key* found = nullptr;
    for (const Key& key : kKeys) found = key.name == words[0] ? &key : found;
    if (found == nullptr) return Bad(number, line, "no such key; device_cost prints all there are");
    out.*found->ns = ns;
  }
  if (seen.empty()) return absl::InvalidArgumentError("there is no cost in it; device_cost prints such a table");
  return out;
}

std::string PrintCosts(const CostModel& costs) {
  std::string out;
  for (const Key& key : kKeys) absl::StrAppend(&out, key.name, " ", costs.*key.ns, "\n");
  return out;
}

}  // namespace ashlar::device
