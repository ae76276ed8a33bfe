// The input of a command: its bytes, read once by the reader of whichever format they are in (formats/formats.h). This
// is the only place that tells formats apart; everything behind it sees what the input holds.
//
//   absl::StatusOr<Input> input = LoadInput(bytes);
//   if (const trace::Snapshot* snapshot = input->snapshot()) ...
//
// An error says in one line what is wrong with the input and where, or which format it is where a command does not take
// that. Thread-compatible: an input that was loaded does not change.
#ifndef ASHLAR_COMMANDS_SHARED_INPUT_H_
#define ASHLAR_COMMANDS_SHARED_INPUT_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/request.h"
#include "analyzer/formats/formats.h"
#include "analyzer/timeline/window.h"

namespace ashlar::answers {

// What a command takes: snapshots and request traces always.
struct InputRule {
  bool problems = false;  // packing problems as well
  bool messages = false;  // and any text with an out-of-memory message in it
  absl::string_view names = "a PyTorch memory snapshot or a request trace";  // what it takes, in words
  formats::ReadLimits limits = {};                                           // how much of a long trace is held
  // Asked before the input is read: whether the rest of the command line goes with this format.
  std::function<absl::Status(formats::InputKind)> fits = {};
};

// The inputs that can be explained.
InputRule ExplainedInputs();

class Input {
 public:
  explicit Input(std::unique_ptr<const formats::Content> content) : content_(std::move(content)) {}

  // nullptr where it holds something else.
  const trace::Snapshot* snapshot() const { return Get<trace::Snapshot>(); }
  const trace::RequestTrace* requests() const { return Get<trace::RequestTrace>(); }
  const formats::PackingProblem* problem() const { return Get<formats::PackingProblem>(); }
  const std::vector<formats::OomMessage>* messages() const { return Get<std::vector<formats::OomMessage>>(); }

 private:
  template <typename T>
  const T* Get() const {
    return std::get_if<T>(content_.get());
  }

  std::unique_ptr<const formats::Content> content_;
};

// InvalidArgument where the rule does not take the format; else a reader's own error, or that of `fits`.
absl::StatusOr<Input> LoadInput(absl::string_view bytes, const InputRule& rule = {});

// A part of an input, as an input of its own (timeline/window.h).
//
//   absl::StatusOr<Input> part = CutInput(*LoadInput(bytes), *timeline::ParseWindow("20%:40%"), std::nullopt);
//
// Of a snapshot it is one device: the one asked for, else the one that commands take by themselves. Of a request trace
// it is the requests between the two ends, and before them the allocations of what is live then. What the replay of a
// part shows is therefore what it shows within the whole, but for a request trace's cache, which begins empty.

// OutOfRange where the window does not go with the input.
absl::StatusOr<Input> CutInput(Input input, const timeline::AskedWindow& window, std::optional<int> device);

// The ids stay as they are.
absl::StatusOr<trace::RequestTrace> CutRequests(const trace::RequestTrace& requests,
                                                const timeline::AskedWindow& window);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_SHARED_INPUT_H_
