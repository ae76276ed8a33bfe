// An input in another format: `ashlar convert` (docs/guide/formats.md).
//
//   absl::StatusOr<ConversionNotes> notes =
//       Convert(*LoadInput(bytes, ConvertedInputs()), OutputFormat::kTrace, settings, {}, out);
//
// For formats of other tools see export/export.h.
#ifndef ASHLAR_COMMANDS_CONVERT_CONVERT_H_
#define ASHLAR_COMMANDS_CONVERT_CONVERT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/base/byte_sink.h"
#include "allocator/trace/snapshot.h"
#include "commands/convert/snapshot_cut.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"

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

#endif  // ASHLAR_COMMANDS_CONVERT_CONVERT_H_
