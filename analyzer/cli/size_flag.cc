#include "analyzer/cli/size_flag.h"

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/answers/replay_settings.h"
#include "analyzer/cli/command.h"

namespace ashlar::cli {
namespace {

bool IsPlainNumber(const std::string& text) { return absl::ascii_isdigit(static_cast<unsigned char>(text.back())); }

}  // namespace

SizeRange DeviceSizes() { return {.end_bytes = answers::kMostCapacityBytes + 1}; }

absl::Status ReadSize(const char* flag, const std::string& text, const SizeRange& range,
                      std::optional<std::uint64_t>& out) {
  if (text.empty()) return absl::OkStatus();
  const absl::StatusOr<std::uint64_t> bytes = ParseBytes(text);
  if (!bytes.ok()) return OfFlag(flag, bytes.status());
  if (*bytes > 0 && *bytes < range.least_plain_bytes && IsPlainNumber(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": '", text, "' is ", text, " bytes: give its unit, such as ", text, "GiB"));
  }
  if (*bytes < range.begin_bytes || *bytes >= range.end_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": '", text, "' is not between ",
                                                   FormatBytes(range.begin_bytes), " and ",
                                                   FormatBytes(range.end_bytes - 1)));
  }
  out = *bytes;
  return absl::OkStatus();
}

}  // namespace ashlar::cli
