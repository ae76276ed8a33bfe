#include "ashlar/explain.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/input_file.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"

namespace ashlar {
namespace {

absl::Status CheckOptions(const ExplainOptions& options) {
  if (options.capacity_bytes.has_value() &&
      (*options.capacity_bytes == 0 || *options.capacity_bytes > answers::kMostCapacityBytes)) {
    return absl::OutOfRangeError(absl::StrCat("capacity_bytes: ", *options.capacity_bytes,
                                              " is not between 1 byte and ", FormatBytes(answers::kMostCapacityBytes)));
  }
  if (options.memory_fraction.has_value() && !(*options.memory_fraction >= 0 && *options.memory_fraction <= 1)) {
    return absl::OutOfRangeError(
        absl::StrCat("memory_fraction: ", *options.memory_fraction, " is not between 0 and 1"));
  }
  return absl::OkStatus();
}

answers::ExplainSettings AnswerOptions(const ExplainOptions& options) {
  answers::ExplainSettings out;
  out.replay.capacity_bytes = options.capacity_bytes;
  out.replay.memory_fraction = options.memory_fraction;
  out.replay.device = options.device;
  out.device_used_bytes = options.device_used_bytes;
  out.replay.progress = options.progress;
  return out;
}

absl::StatusOr<std::string> ExplainText(absl::string_view bytes, const ExplainOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  const absl::StatusOr<std::vector<answers::Explanation>> explanations =
      answers::ExplainBytes(bytes, AnswerOptions(options));
  if (!explanations.ok()) return explanations.status();
  return report::PrintExplanations(*explanations, options.as_json);
}

}  // namespace

absl::StatusOr<std::string> ExplainBytes(absl::string_view bytes, const ExplainOptions& options) {
  return ExplainText(bytes, options);
}

absl::StatusOr<std::string> ExplainFile(const std::string& path, const ExplainOptions& options) {
  const absl::StatusOr<formats::InputBytes> bytes = formats::OpenInput(path, {.is_enough = formats::IsUnknownBinary});
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<std::string> text = ExplainText(*bytes, options);
  if (!text.ok()) return absl::Status(text.status().code(), absl::StrCat(path, ": ", text.status().message()));
  return text;
}

}  // namespace ashlar
