// What the analyzer's page asks: inputs are read one after another, and each answer is what a command of the program
// prints of them.
//
//   WebSession session([](const std::string& stage) { Show(stage); });
//   absl::Status status = session.Set("capacity", "16GiB");                      // what --capacity is to the program
//   status.Update(session.Read("snapshot.pickle", std::move(bytes), size));
//   absl::StatusOr<std::string> text = session.Answer("text");                   // what `ashlar explain` prints
//
// An error is one line: what, where, and how to mend it. It names the input as the program does. Not thread-safe.
#ifndef ASHLAR_COMMANDS_WEB_WEB_SESSION_H_
#define ASHLAR_COMMANDS_WEB_WEB_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_together.h"
#include "commands/shared/replay_settings.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {

struct FreeMemory {
  void operator()(char* bytes) const { std::free(bytes); }
};
// Of malloc: the page writes a file there.
using HeldBytes = std::unique_ptr<char, FreeMemory>;

class WebSession {
 public:
  explicit WebSession(Progress progress) { settings_.progress = std::move(progress); }

  // capacity, device-used, device, conf, compat, max-events: as the flags of that name; empty: not given. confs: the
  // settings that a sweep tries, with ";" between; empty: its own. pictures: "1" where a page will be asked for.
  // template: the page, which must be given before it is asked for. InvalidArgument names the key.
  absl::Status Set(absl::string_view key, const std::string& value);

  // The bytes are freed as soon as they were read.
  absl::Status Read(const std::string& name, HeldBytes bytes, std::size_t size);

  // "text", "json", "markdown": as `explain --format`; "page": as `report`; "diff", "diff-json": as `diff` of two
  // inputs; "sweep", "sweep-json": as `sweep`; "traces": how many inputs are snapshots or traces. InvalidArgument: no
  // such answer, or none of these inputs.
  absl::StatusOr<std::string> Answer(absl::string_view what);

 private:
  absl::Status Explain(bool with_pictures);
  absl::StatusOr<std::string> PrintPage();
  absl::StatusOr<std::string> PrintDiff(bool as_json);
  absl::StatusOr<std::string> PrintSweep(bool as_json);
  absl::StatusOr<TracedRun> Trace(const NamedInput& input) const;
  std::size_t CountTraces() const;

  ReplaySettings settings_;
  std::optional<std::uint64_t> device_used_bytes_;
  std::optional<std::uint64_t> max_events_;
  std::vector<std::string> confs_;
  bool with_pictures_ = false;
  std::string template_;
  std::vector<NamedInput> inputs_;
  std::vector<Explanation> explanations_;  // of them all; empty: not yet made
  bool have_pictures_ = false;
};

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_WEB_WEB_SESSION_H_
