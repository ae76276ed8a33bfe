// What other settings would have done: the recorded requests replayed under each, which one is advised, and our own
// allocator's row beside them.
//
//   absl::StatusOr<NotedWhatIfs> tried = TrySettings(snapshot, run, steps, settings, nullptr);
//   tried->what_ifs.advice.paste
#ifndef ASHLAR_COMMANDS_EXPLAIN_WHAT_IFS_H_
#define ASHLAR_COMMANDS_EXPLAIN_WHAT_IFS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/request.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/replay/warm_replay.h"
#include "analyzer/whatif/advice.h"
#include "analyzer/whatif/own_allocator.h"
#include "analyzer/whatif/what_if.h"
#include "commands/shared/replay_settings.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {

class PictureMaker;  // explain/picture/picture_maker.h

// The program itself, run again under a setting that gets past its failed request: a dry run does that.
struct SettingRun {
  std::string conf;   // as of a row
  bool ends = false;  // to its end; else a request found no memory again
  std::uint64_t peak_reserved_bytes = 0;

  bool operator==(const SettingRun&) const = default;
};

struct WhatIfs {
  std::optional<replay::Fidelity> fidelity = {};  // of the recorded settings
  std::string replayed_as = {};                   // version, order, settings; empty without a replay
  std::vector<whatif::WhatIfRow> rows = {};
  std::optional<std::uint64_t> capacity_bytes = {};  // that every row had
  whatif::Advice advice = {};
  std::optional<whatif::OwnAllocator> own = {};  // nullopt: not asked for (own_allocator.h)
  std::optional<SettingRun> run_again = {};      // nullopt: it was not run again
};

struct NotedWhatIfs {
  WhatIfs what_ifs;
  std::vector<trace::Note> notes = {};              // how the rows differ from the record
  std::optional<analyses::Continuation> next = {};  // how a run that ended in a failed request would have gone on
};

// `picture`, where given, draws the rows as they are replayed. An error is a replay's own.
absl::StatusOr<NotedWhatIfs> TrySettings(const trace::Snapshot& snapshot, const ObservedRun& run,
                                         const analyses::Steps& steps, const ReplaySettings& settings,
                                         PictureMaker* picture);
absl::StatusOr<WhatIfs> TrySettingsOnRequests(const trace::RequestTrace& requests, const ReplayedRun& run,
                                              const ReplaySettings& settings, PictureMaker* picture);

// The same without advice, and why there is none.
WhatIfs Withheld(WhatIfs what_ifs, std::string because);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_WHAT_IFS_H_
