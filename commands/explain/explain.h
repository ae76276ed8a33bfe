// Makes explanations of what `ashlar explain` takes: a snapshot, a request trace, an out-of-memory message.
//
//   absl::StatusOr<Input> input = LoadInput(bytes, ExplainedInputs());
//   absl::StatusOr<std::vector<Explanation>> explanations = Explain(*input, {.replay = settings});
//
// Safe from any thread; the settings' progress is told on the caller's.
#ifndef ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_H_
#define ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/trace/request.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/formats/oom/oom_message.h"
#include "commands/explain/elsewhere.h"
#include "commands/explain/explanation.h"
#include "commands/explain/picture/picture.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"

namespace ashlar::answers {

struct ExplainSettings {
  ReplaySettings replay = {};
  std::optional<std::uint64_t> device_used_bytes = {};  // by all processes together, as nvidia-smi shows it
  std::vector<analyses::RankPeak> other_ranks = {};     // of the same job
  std::optional<OtherDevice> other_device = {};         // whether the run would fit there
  std::optional<PictureLimits> picture = {};            // where given, Explanation::picture is made
  std::function<bool(const trace::Frame&)> calls_fused_attention = {};  // as of analyses::CauseDevice
  std::optional<analyses::SharedDevice> shared_device = {};             // likewise
  std::optional<SettingRun> run_again = {};                             // what came of running the program again
  std::optional<std::uint64_t> device_bytes = {};  // that the run could have, where its failures do not tell
};

// One, but for a text with several different out-of-memory messages. OutOfRange: an option does not go with the input.
absl::StatusOr<std::vector<Explanation>> Explain(const Input& input, const ExplainSettings& options);
// The same for bytes that have not been read.
absl::StatusOr<std::vector<Explanation>> ExplainBytes(absl::string_view bytes, const ExplainSettings& options);

// FailedPrecondition where the trace and the segments contradict each other; OutOfRange for a device that is not there.
absl::StatusOr<Explanation> ExplainSnapshot(const trace::Snapshot& snapshot, const ExplainSettings& options);

// Replays the requests under the settings asked for (default: torch-2.10, no conf) and explains what came of it.
absl::StatusOr<Explanation> ExplainRequests(const trace::RequestTrace& requests, const ExplainSettings& asked);

Explanation ExplainMessage(const formats::OomMessage& message, const ExplainSettings& options);

inline constexpr std::size_t kMostExplainedMessages = 1000;
// One for each different message, in the order of the first ones; what stands several times is counted in a note. At
// most so many: a note of the last one counts the messages behind it.
std::vector<Explanation> ExplainMessages(absl::Span<const formats::OomMessage> messages,
                                         const ExplainSettings& options);

// Explains a trace of calls on device memory (trace::RecordsDeviceCalls). It has no caching allocator, so it has no
// stranded memory, settings or retries. The explanation says who held the memory and what was not freed.

// FailedPrecondition where the trace and the segments contradict each other; OutOfRange where there is no such device.
absl::StatusOr<Explanation> ExplainCalls(const trace::Snapshot& snapshot, const ExplainSettings& options);

// What is said of settings for such a trace.
inline constexpr char kNoSettings[] =
    "the program calls the device itself, so that no allocator's settings apply; what a caching allocator would make "
    "of "
    "the same requests: ashlar convert FILE out.trace, then ashlar explain out.trace";

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_H_
