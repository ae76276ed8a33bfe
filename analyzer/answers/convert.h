// An input in another format: `ashlar convert` (docs/guide/formats.md).
//
//   absl::StatusOr<Converted> converted = Convert(*LoadInput(bytes, ConvertedInputs()), OutputFormat::kTrace,
//   settings); WriteFile("train.trace", converted->bytes);
#ifndef ASHLAR_ANALYZER_ANSWERS_CONVERT_H_
#define ASHLAR_ANALYZER_ANSWERS_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/answers/input.h"
#include "analyzer/answers/replay_settings.h"

namespace ashlar::answers {

enum class OutputFormat : std::uint8_t { kRecording, kPickle, kTrace, kCsv };

struct Converted {
  std::string bytes;
  std::vector<trace::Note> notes;  // what the format does not carry, what was guessed
};

// The inputs that can be converted.
InputRule ConvertedInputs();

// Requests and packing problems are replayed under the settings where the format needs events.
absl::StatusOr<Converted> Convert(const Input& input, OutputFormat to, const ReplaySettings& settings);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_CONVERT_H_
