// An input in another format: `ashlar convert` (docs/guide/formats.md).
//
//   absl::StatusOr<ConversionNotes> notes =
//       Convert(*LoadInput(bytes, ConvertedInputs()), OutputFormat::kTrace, settings, {}, out);
//
// For formats of other tools see exports/export.h.
#ifndef ASHLAR_ANALYZER_ANSWERS_CONVERT_H_
#define ASHLAR_ANALYZER_ANSWERS_CONVERT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/base/byte_sink.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/answers/input.h"
#include "analyzer/answers/replay_settings.h"
#include "analyzer/answers/snapshot_cut.h"

namespace ashlar::answers {

enum class OutputFormat : std::uint8_t { kRecording, kPickle, kTrace, kCsv };

// What the format does not carry, what was guessed.
using ConversionNotes = std::vector<trace::Note>;

// The inputs that can be converted.
InputRule ConvertedInputs();

// Requests and packing problems are replayed under the settings where the format needs events. `cut` is for
// kPickle alone, and of a snapshot.
absl::StatusOr<ConversionNotes> Convert(const Input& input, OutputFormat to, const ReplaySettings& settings,
                                        const CutRule& cut, ByteSink& out);

// A packing problem's lifetimes as requests: what ends at a time makes room for what begins there. Other inputs as they
// are.
Input WithoutProblem(Input input);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_CONVERT_H_
