// Explains what a run left: the process that failed, else the one that held most.
#ifndef ASHLAR_LAUNCHER_EXPLAIN_H_
#define ASHLAR_LAUNCHER_EXPLAIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/device/address_space.h"
#include "commands/explain/explanation.h"
#include "commands/explain/what_ifs.h"
#include "commands/shared/replay_settings.h"
#include "launcher/results.h"

namespace ashlar::cli {

// The first with a failure, else the first of those with a history whose device held most; nullptr: there is no
// history.
const ProcessRun* ToExplain(const RunResults& results);

// What is known of the memory of a process's device.
struct ProcessMemory {
  std::optional<std::uint64_t> total_bytes = {};
  bool is_held_to_total = false;    // the replays have that, though the run itself had more
  std::uint64_t context_bytes = 0;  // of that, what its own context takes
  std::uint64_t in_use_bytes = 0;   // of that, what others than the run's programs hold
  device::AddressOrder addresses = device::AddressOrder::kAscending;  // where its segments lie, for what is replayed
  bool is_drawn = false;                                              // the explanation gets a picture
  std::size_t other_processes = 0;                                    // that used a device as well
  std::optional<answers::SettingRun> run_again = {};                  // what came of running the program again
};

// By its last failure, else by its history. A run that got its memory only by retries is replayed in what it had.
absl::StatusOr<answers::Explanation> ExplainProcess(const ProcessRun& run, const ProcessMemory& memory,
                                                    const answers::Progress& progress);

// Whose the device's memory is, of a process beside whose history there is a log of its calls on the device: a line;
// empty where PyTorch's allocator alone asked, or nothing is known.
std::string OwnersLine(const ProcessRun& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_EXPLAIN_H_
