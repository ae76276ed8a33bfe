#include "allocator/policy/conf_split.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ashlar::policy {

absl::StatusOr<std::vector<Setting>> SplitConf(absl::string_view conf) {
  std::string text;
  for (const char c : conf) {
    if (!absl::ascii_isspace(static_cast<unsigned char>(c))) text.push_back(c);
  }
  std::vector<Setting> settings;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      if (text[i] == '[') ++depth;
      if (text[i] == ']') --depth;
      if (text[i] != ',' || depth > 0) continue;
    }
    const std::string item = text.substr(begin, i - begin);
    begin = i + 1;
    if (item.empty()) continue;
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == item.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item, "' in '", conf, "' is no setting: write key:value, with commas between settings"));
    }
    settings.push_back({item.substr(0, colon), item.substr(colon + 1)});
  }
  if (depth != 0) return absl::InvalidArgumentError(absl::StrCat("'", conf, "' has a bracket without its partner"));
  return settings;
}

std::string WithoutKey(absl::string_view conf, absl::string_view key) {
  const absl::StatusOr<std::vector<Setting>> settings = SplitConf(conf);
  if (!settings.ok()) return std::string(conf);
  std::string out;
  bool is_found = false;
  for (const Setting& setting : *settings) {
    if (setting.key == key) {
      is_found = true;
    } else {
      absl::StrAppend(&out, out.empty() ? "" : ",", setting.key, ":", setting.value);
    }
  }
  return is_found ? out : std::string(conf);
}

}  // namespace ashlar::policy
