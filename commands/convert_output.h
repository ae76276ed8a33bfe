// The formats that `ashlar convert` writes, and the writing of each: to a file, a folder or standard output.
//
//   absl::StatusOr<ConvertFormat> format = FindConvertFormat("out.sqlite", "");
//   absl::StatusOr<std::vector<trace::Note>> notes = WriteConverted(*format, input, settings, {}, "out.sqlite");
#ifndef ASHLAR_COMMANDS_CONVERT_OUTPUT_H_
#define ASHLAR_COMMANDS_CONVERT_OUTPUT_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "commands/convert/convert.h"
#include "commands/export/export.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"

namespace ashlar::cli {

enum class TableKind : std::uint8_t { kDatabase, kFolder };

using ConvertFormat = std::variant<answers::OutputFormat, exports::ExportFormat, TableKind>;

// By the name of --to, else by the end of the output's name. InvalidArgument, with what there is.
absl::StatusOr<ConvertFormat> FindConvertFormat(const std::string& output, const std::string& to);

// "ashlar, pickle, trace, ...", as --to takes them.
std::string ConvertFormatNames();

// InvalidArgument where the input is what would be written: of a folder, one of its files.
absl::Status KeepsInput(const ConvertFormat& format, const std::string& input, const std::string& output);

// The notes of Convert and Export. InvalidArgument where the format does not go to standard output. Unavailable: the
// output cannot be written; what was there is as it was.
absl::StatusOr<std::vector<trace::Note>> WriteConverted(ConvertFormat format, answers::Input input,
                                                        const answers::ReplaySettings& settings,
                                                        const answers::CutRule& cut, const std::string& output);

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_CONVERT_OUTPUT_H_
