// The report of a dry run, as text, as Markdown and as JSON (docs/schemas/dry-run.schema.json): the same numbers in
// all.
#ifndef ASHLAR_LAUNCHER_DRY_RUN_REPORT_H_
#define ASHLAR_LAUNCHER_DRY_RUN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/explain/explanation.h"
#include "launcher/cards.h"
#include "launcher/device_account.h"
#include "launcher/machine.h"
#include "launcher/results.h"
#include "launcher/value_flags.h"

namespace ashlar::cli {

// What the run took for granted.
struct Assumption {
  std::string what;
  std::optional<std::uint64_t> bytes;
  std::string mark;  // "measured", "published", "assumed", "given"
  std::string source;
};

// The program run again as another card.
struct CardRun {
  const gpus::Gpu* gpu = nullptr;
  std::string why_not;  // it did not come to its end, or has nothing to tell; empty: its rows are in the table
};

struct CardRuns {
  std::vector<CardRun> runs;
  std::string why_none;                // it was not run again; empty: it was, or there was no other card to run it as
  std::vector<std::string> kept_away;  // files that the runs would have written, and did not
  std::vector<std::string> not_sent;   // "HOST:PORT" that they would have connected to, and did not
};

// Unknown: no device was used, or no request failed and the program ended before its end.
enum class FitState : std::uint8_t { kUnknown, kFits, kDoesNot };

// A rank of a world that was run without the others (rank_runs.h).
struct RankRole {
  int rank = 0;
  std::string what;                  // "stage 2 of 4", "last of the 8 ranks 0-7"
  std::vector<int> stands_for = {};  // empty: it was run to compare, and is like another role
  FitState fit = FitState::kUnknown;
  std::uint64_t peak_bytes = 0;
  std::uint64_t allocated_bytes = 0;  // as PyTorch counts them, at its own peak
  libraries::BytesBetween beside = {};
  std::uint64_t communicators = 0;
  std::string why_not = {};  // it did not come to its end; empty: it did
};

struct RankRuns {
  int ranks = 0, per_node = 1;
  std::vector<RankRole> roles = {};        // in the order of their runs
  std::size_t worst = 0;                   // the role that decides, and that the report is of
  std::vector<std::string> compared = {};  // a line each
  std::vector<std::string> assumed = {};
  std::string why_none = {};  // no role but the first was run; empty: they were
};

struct RunReport {
  std::vector<std::string> program;
  int exit_code = 0;
  HollowMachine machine;
  RunResults results;
  std::uint64_t host_bytes = 0;           // resident memory of the largest process
  const ProcessRun* explained = nullptr;  // in results: the first that failed, else the one that held most
  std::optional<answers::Explanation> explanation;
  std::optional<CardTable> cards;
  CardRuns card_runs;
  std::optional<RankRuns> ranks;    // where --ranks was given
  std::string routing;              // the rule of --routing; empty: it was not given
  std::vector<std::string> values;  // of --value, as given
  bool has_workspaces = false;      // of cuDNN, by --workspaces cudnn
  std::vector<std::string> notes;   // what could not be read, what was kept
};

bool UsedADevice(const RunReport& report);

// With what a program ended before its end: its peak is what was seen until then.
enum class EndedBy : std::uint8_t { kExitCode, kSignal, kException, kProcess };
struct Ended {
  EndedBy by = EndedBy::kExitCode;
  std::string what;  // "signal 9 (SIGKILL)", "ValueError: no such file", "exit code 3", "process 4242, which ..."
};
std::optional<Ended> EndedEarly(const RunReport& report);  // nullopt: exit code 0, and no process died

FitState FitOf(const RunReport& report);
std::uint64_t PeakBytes(const RunReport& report);  // of the device that held most

// Of all processes together, the greatest count first.
std::vector<MadeUpValue> MadeUpValues(const RunReport& report);
std::uint64_t MadeUpTotal(const RunReport& report);
// What came of --value, in the order of the flags; and which lines read values, where it was given.
std::vector<GivenValue> GivenValues(const RunReport& report);
std::vector<ReadingLine> ReadingLines(const RunReport& report);
std::vector<RefusedCall> RefusedCalls(const RunReport& report);
std::vector<Assumption> Assumptions(const RunReport& report);
// Of the device that takes most; nullopt: no process left its accounting.
std::optional<DeviceAccount> AccountOf(const RunReport& report);
// Where it fits: what libraries must not take more than; nullopt: it fits whatever they take, or has no limit.
std::optional<Condition> FitsUnless(const RunReport& report);

void AppendRanks(const RankRuns& ranks, std::string& out);  // of the text
std::string RankName(const RankRole& role);                 // "rank 56 (stage 8 of 8)"
std::string ToText(const RunReport& report);
std::string ToMarkdown(const RunReport& report);
std::string ToJson(const RunReport& report);
std::string DryRunSchema();  // docs/schemas/dry-run.schema.json

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_DRY_RUN_REPORT_H_
