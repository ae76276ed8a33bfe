#include "commands/explain/explain_together.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::answers {
namespace {

using formats::OomMessage;

struct RecordedFailure {
  int device = 0;
  std::uint64_t request_bytes = 0;  // rounded by the allocator
  std::uint64_t free_bytes = 0;     // on the device
};

// The last of each device.
std::vector<RecordedFailure> FailuresOf(const trace::Snapshot& snapshot, std::optional<int> device) {
  std::vector<RecordedFailure> out;
  for (std::size_t i = 0; i < snapshot.device_traces.size(); ++i) {
    const int number = static_cast<int>(i);
    if (device.has_value() && *device != number) continue;
    const trace::EventList& events = snapshot.device_traces[i];
    const auto failed = std::find_if(events.rbegin(), events.rend(),
                                     [](const trace::Event& event) { return event.action == trace::Action::kOom; });
    if (failed != events.rend()) out.push_back({number, failed->size_bytes, failed->address});
  }
  return out;
}

bool Holds(const formats::Figure& figure, std::uint64_t bytes) {
  return figure.low_bytes <= bytes && bytes <= figure.high_bytes;
}

// The rounded request may be above what was asked by up to the unit of rounding.
bool Fits(const OomMessage& message, const RecordedFailure& failure) {
  if (message.device.has_value() && *message.device != failure.device) return false;
  const std::optional<ByteSpan> request = analyses::JudgeOomMessage(message, {}).request_interval;
  if (!request.has_value()) return false;
  const auto bytes = static_cast<std::int64_t>(failure.request_bytes);
  const bool is_size = request->low_bytes <= bytes && bytes <= request->high_bytes;
  return is_size && message.free.has_value() && Holds(*message.free, failure.free_bytes);
}

std::optional<RecordedFailure> FailureOf(const OomMessage& message, const trace::Snapshot& snapshot,
                                         std::optional<int> device) {
  if (!absl::StartsWith(message.family, "pt-")) return std::nullopt;
  for (const RecordedFailure& failure : FailuresOf(snapshot, device)) {
    if (Fits(message, failure)) return failure;
  }
  return std::nullopt;
}

// What the message says of the device, where the command line does not.
ExplainSettings WithMessage(const OomMessage& message, int device, ExplainSettings options) {
  options.replay.device = device;
  if (!message.total.has_value()) return options;
  const std::uint64_t total = message.total->MiddleBytes();
  const bool is_given = options.replay.capacity_bytes.has_value();
  if (!is_given) options.replay.capacity_bytes = total;
  if (!options.device_used_bytes.has_value() && message.free.has_value() && message.free->MiddleBytes() < total) {
    options.device_used_bytes = total - message.free->MiddleBytes();
  }
  if (!is_given && !options.replay.memory_fraction.has_value() && message.limit.has_value() && total > 0) {
    const double share = static_cast<double>(message.limit->MiddleBytes()) / static_cast<double>(total);
    if (share <= 1) options.replay.memory_fraction = share;
  }
  return options;
}

// What the message tells that no snapshot has.
std::vector<trace::Note> NotesOnMessage(const OomMessage& message, const OomAccounting& accounting) {
  std::vector<trace::Note> out;
  std::string told;
  const auto tell = [&told](auto&&... parts) { absl::StrAppend(&told, told.empty() ? "" : "; ", parts...); };
  if (message.total.has_value()) tell("the device has ", message.total->InWords());
  if (message.limit.has_value()) tell("the process may hold ", message.limit->InWords());
  for (const formats::ProcessUse& process : message.processes) {
    if (!process.used.has_value()) continue;
    const std::string who =
        process.is_this_process ? "this process" : absl::StrCat("process ", process.pid.value_or(0));
    tell(who, " has ", process.used->InWords(), " in use");
  }
  if (!told.empty()) out.push_back({"told_by_message", absl::StrCat("from the message: ", told), 1});
  for (const formats::ProcessUse& process : message.processes) {
    const std::uint64_t reserved = accounting.reserved_bytes.value_or(0);
    if (!process.is_this_process || !process.used.has_value() || process.used->low_bytes < reserved) continue;
    out.push_back({"non_pytorch_memory",
                   absl::StrCat("this process holds ", FormatBytes(process.used->MiddleBytes() - reserved),
                                " that PyTorch's allocator did not hand out: the CUDA context and other libraries"),
                   1});
  }
  return out;
}

Explanation Joined(Explanation of_snapshot, const std::string& name, const OomMessage& message) {
  absl::StrAppend(&of_snapshot.source, "; the message of this failure (", message.family, ") in ", name);
  of_snapshot.failure.raised_at = RaisedAtOf(message);
  for (trace::Note& note : NotesOnMessage(message, of_snapshot.memory.accounting)) {
    of_snapshot.notes.push_back(std::move(note));
  }
  return of_snapshot;
}

std::string Differs(const OomMessage& message, const trace::Snapshot& snapshot, std::optional<int> device) {
  const std::vector<RecordedFailure> failures = FailuresOf(snapshot, device);
  if (failures.empty()) return "the snapshot holds no failed request: it was taken before, or its ring lost it";
  const RecordedFailure& last = failures.back();
  return absl::StrCat("the snapshot's last failure is of ", FormatBytes(last.request_bytes), " on device ", last.device,
                      " with ", FormatBytes(last.free_bytes), " free, the message's of ",
                      message.tried.has_value() ? message.tried->InWords() : "an untold size", " with ",
                      message.free.has_value() ? message.free->InWords() : "an untold size", " free");
}

class Together {
 public:
  Together(const std::vector<NamedInput>& inputs, const ExplainSettings& options) : inputs_(inputs), options_(options) {
    for (const NamedInput& input : inputs) {
      if (input.input.messages() != nullptr)
        left_.push_back(*input.input.messages());
      else
        left_.emplace_back();
    }
  }

  absl::StatusOr<std::vector<Explanation>> Run() {
    std::vector<std::vector<Explanation>> parts(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].input.messages() != nullptr) continue;
      absl::StatusOr<std::vector<Explanation>> part = ExplainOne(inputs_[i]);
      if (!part.ok()) {
        return absl::Status(part.status().code(), absl::StrCat(inputs_[i].name, ": ", part.status().message()));
      }
      parts[i] = *std::move(part);
    }
    std::vector<Explanation> out;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!left_[i].empty()) parts[i] = ExplainMessages(left_[i], options_);
      for (Explanation& explanation : parts[i]) {
        explanation.name = inputs_[i].name;
        if (inputs_.size() > 1) explanation.source = absl::StrCat(inputs_[i].name, ": ", explanation.source);
        out.push_back(std::move(explanation));
      }
    }
    return out;
  }

 private:
  absl::StatusOr<std::vector<Explanation>> ExplainOne(const NamedInput& input) {
    const trace::Snapshot* snapshot = input.input.snapshot();
    if (snapshot == nullptr) return Explain(input.input, options_);
    const std::optional<int> device = options_.replay.device;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      for (std::size_t at = left_[i].size(); at-- > 0;) {
        const OomMessage message = left_[i][at];
        const std::optional<RecordedFailure> failure = FailureOf(message, *snapshot, device);
        if (!failure.has_value()) continue;
        TakeOut(*snapshot, failure->device, left_[i]);
        return ExplainJoined(input, inputs_[i].name, message, *failure);
      }
    }
    absl::StatusOr<std::vector<Explanation>> alone = Explain(input.input, options_);
    if (!alone.ok()) return alone;
    for (trace::Note& note : NotesOnStrangers(*snapshot)) alone->front().notes.push_back(std::move(note));
    return alone;
  }

  absl::StatusOr<std::vector<Explanation>> ExplainJoined(const NamedInput& input, const std::string& name,
                                                         const OomMessage& message, const RecordedFailure& failure) {
    absl::StatusOr<std::vector<Explanation>> out = Explain(input.input, WithMessage(message, failure.device, options_));
    if (out.ok()) out->front() = Joined(std::move(out->front()), name, message);
    return out;
  }

  // A log may print the same failure several times; it is answered with the snapshot.
  static void TakeOut(const trace::Snapshot& snapshot, int device, std::vector<OomMessage>& messages) {
    const auto is_answered = [&](const OomMessage& message) {
      return FailureOf(message, snapshot, device).has_value();
    };
    messages.erase(std::remove_if(messages.begin(), messages.end(), is_answered), messages.end());
  }

  std::vector<trace::Note> NotesOnStrangers(const trace::Snapshot& snapshot) const {
    std::vector<trace::Note> out;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (left_[i].empty()) continue;
      out.push_back({"another_failure",
                     absl::StrCat("no message in ", inputs_[i].name, " is of this snapshot's failure: ",
                                  Differs(left_[i].back(), snapshot, options_.replay.device)),
                     1});
    }
    return out;
  }

  const std::vector<NamedInput>& inputs_;
  const ExplainSettings& options_;
  std::vector<std::vector<OomMessage>> left_;  // of each input: messages that no snapshot answers
};

}  // namespace

absl::StatusOr<std::vector<Explanation>> ExplainTogether(const std::vector<NamedInput>& inputs,
                                                         const ExplainSettings& options) {
  return Together(inputs, options).Run();
}

}  // namespace ashlar::answers
