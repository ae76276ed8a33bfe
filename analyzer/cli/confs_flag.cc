#include "analyzer/cli/confs_flag.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "analyzer/cli/named_input.h"

namespace ashlar::cli {

absl::StatusOr<std::vector<std::string>> ReadConfs(const std::string& given) {
  std::error_code ignored;
  std::string text = given;
  const bool is_file = std::filesystem::is_regular_file(given, ignored) || std::filesystem::is_fifo(given, ignored);
  if (is_file) {
    absl::StatusOr<std::string> bytes = ReadSmallInput(given);
    if (!bytes.ok()) return bytes.status();
    text = *std::move(bytes);
  }
  std::vector<std::string> out;
  for (const absl::string_view part : absl::StrSplit(text, is_file ? '\n' : ';')) {
    const absl::string_view conf = absl::StripAsciiWhitespace(part);
    if (conf.empty() || conf.front() == '#') continue;
    out.push_back(conf == "default" ? "" : std::string(conf));
  }
  if (out.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", given, "' has no conf: give confs with ; between, or a file with one a line"));
  }
  return out;
}

}  // namespace ashlar::cli
