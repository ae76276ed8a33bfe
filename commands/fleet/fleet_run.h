// Runs a fleet: the files of one job, largest first, shared out among processes of this machine, or of all machines
// that a launcher started it on, and reduced to one answer. The answer is the same for any number of processes.
//
//   FleetRun run{.inputs = {"snapshots"}, .processes = 2, .summarize = ..., .settings = "1.0 --capacity 16GiB"};
//   absl::StatusOr<std::optional<answers::FleetAnswer>> answer = RunFleet(run);   // nullopt: another process has it
//
// It forks, so the caller has no threads yet. One thread.
#ifndef ASHLAR_COMMANDS_FLEET_FLEET_RUN_H_
#define ASHLAR_COMMANDS_FLEET_FLEET_RUN_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "commands/fleet/fleet.h"
#include "commands/fleet/rank_text.h"

namespace ashlar::fleet {

struct FleetRun {
  std::vector<std::string> inputs;
  std::size_t processes = 1;  // that read files; of each process that was launched
  std::string mpi_module;     // empty: alone on this machine
  int launched = 0;           // processes that a launcher started, all to be joined by MPI; 0: not told
  std::string results;        // a folder for what comes; empty: it is not kept
  std::string settings;       // all that a result depends on besides its file
  std::function<RankResult(const std::string& path)> summarize;
  // Called in the process that shares out: once before the first file, and after each.
  std::function<void(std::size_t done, std::size_t files)> progress;
  // One line for people: what was done before, which process was lost.
  std::function<void(const std::string& line)> tell;
};

// NotFound: an input stands for nothing. FailedPrecondition: the module does not fit the launcher. Unavailable: MPI,
// the results' folder or all processes failed.
absl::StatusOr<std::optional<answers::FleetAnswer>> RunFleet(const FleetRun& run);

}  // namespace ashlar::fleet

#endif  // ASHLAR_COMMANDS_FLEET_FLEET_RUN_H_
