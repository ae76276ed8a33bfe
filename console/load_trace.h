// Inputs of a command: their bytes, and, for the commands that take one (check, diff, bound), the trace in them.
#ifndef ASHLAR_CONSOLE_LOAD_TRACE_H_
#define ASHLAR_CONSOLE_LOAD_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analyzer/formats/input_file.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"
#include "commands/shared/traced_run.h"
#include "console/command.h"

namespace ashlar::cli {

// Of a long trace so many events are held unless --max-events says otherwise: explained they take less than 4 GB.
inline constexpr std::uint64_t kHeldEvents = 20'000'000;

// How much of a long trace is held: what --max-events says, else kHeldEvents, or as many as fit in the memory that the
// machine has free.
formats::ReadLimits LimitsOf(const ReplayFlags& flags);
// The same for what is to lose nothing: without the flag as many as fit.
formats::ReadLimits WholeWhereItFits(const ReplayFlags& flags);

// The bytes of an input. Errors name it. Has the progress told, and what memory it takes should that not suffice.
absl::StatusOr<formats::InputBytes> LoadBytes(const std::string& input, const answers::ReplaySettings& settings);

// The settings with the input's name before what the progress says of it.
answers::ReplaySettings NamingProgress(const std::string& input, answers::ReplaySettings settings);

// Bytes that were read from `input`, as the rule takes them. Errors name the input; OutOfRange where a flag does not go
// with it: a snapshot is taken as it was recorded.
absl::StatusOr<answers::Input> InputOf(const std::string& input, absl::string_view bytes, const ReplayFlags& flags,
                                       answers::InputRule rule = {});

// What `explain` and `report` take, also of bytes that were read from it. Errors name the input.
absl::StatusOr<answers::Input> ToExplain(const std::string& input, absl::string_view bytes, const ReplayFlags& flags,
                                         const answers::ReplaySettings& settings);
absl::StatusOr<answers::Input> LoadToExplain(const std::string& input, const ReplayFlags& flags,
                                             const answers::ReplaySettings& settings);

// The trace of an input, of one device or of each.
absl::StatusOr<answers::TracedRun> LoadTrace(const std::string& input, const ReplayFlags& flags,
                                             const answers::ReplaySettings& settings);
absl::StatusOr<std::vector<answers::TracedRun>> LoadDevices(const std::string& input, const ReplayFlags& flags,
                                                            const answers::ReplaySettings& settings);

// The part of an input that --window names; errors name the input.
absl::StatusOr<answers::Input> PartOf(const std::string& input, absl::StatusOr<answers::Input> loaded,
                                      const answers::ReplaySettings& settings);

// The status with the input before its message.
absl::Status OfInput(const std::string& input, const absl::Status& status);

// Fail() with the exit code that such an error has.
int FailLoad(const absl::Status& status);

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_LOAD_TRACE_H_
