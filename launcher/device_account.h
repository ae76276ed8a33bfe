// Where the memory of the device that a dry run fills most is: what was seen, by who asked for it, and what libraries
// would take beside it on a GPU.
//
//   const std::optional<DeviceAccount> account = AccountOf(report);
//   for (const AccountPart& part : account->parts) part.name;   // "PyTorch's allocator", "CUDA context", "NCCL"
//
// The hollow device takes nothing for libraries, so that what is beside is an interval (analyzer/libraries). Sizes are
// bytes.
#ifndef ASHLAR_LAUNCHER_DEVICE_ACCOUNT_H_
#define ASHLAR_LAUNCHER_DEVICE_ACCOUNT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/libraries/nccl_memory.h"
#include "launcher/machine.h"
#include "launcher/results.h"

namespace ashlar::cli {

struct AccountPart {
  std::string name;
  libraries::BytesBetween bytes;
  bool is_in_peak = false;  // else it comes on top
  std::string mark;         // "measured", "computed", "assumed", "published", "given"
  std::string source;
};

struct DeviceAccount {
  int ordinal = 0;
  std::uint64_t peak_bytes = 0;  // of all processes on it, as the accounting has it, and what is in use beside them
  std::vector<AccountPart> parts;

  libraries::BytesBetween Beside() const;  // of all parts that come on top
};

// Of the device that takes most with all that may come on top; nullopt: no process left its accounting. `host_bytes`:
// the resident memory of the run's largest process, which counts where the device's memory is the host's.
std::optional<DeviceAccount> AccountOf(const RunResults& results, const HollowMachine& machine,
                                       std::uint64_t host_bytes);

// What must not take more than so much, so that the device is enough.
struct Condition {
  std::string who;  // "NCCL"; "libraries" where none alone decides; of a host's memory its other programs
  std::uint64_t bytes = 0;
};
// nullopt: it is enough whatever they take, by the account.
std::optional<Condition> ConditionOf(const DeviceAccount& account, const HollowMachine& machine);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_DEVICE_ACCOUNT_H_
