// The machine of a dry run: from flags, a card of the table or a profile to the file that the preloaded library reads.
//
//   absl::StatusOr<HollowMachine> machine = ReadMachine({.device = "A100-80GB", .devices = 2});
//   machine->text;   // "devices=2\nname=NVIDIA A100-SXM4-80GB\ntotal_bytes=..."
//
// The keys are those of hollow/process/settings.h; what is not given is not written. Sizes are bytes.
#ifndef ASHLAR_LAUNCHER_MACHINE_H_
#define ASHLAR_LAUNCHER_MACHINE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/device/address_space.h"
#include "commands/shared/cards.h"
#include "console/command_line.h"

namespace ashlar::cli {

// As given; empty: not given.
struct MachineFlags {
  std::string device, capacity, profile;
  std::optional<std::uint64_t> devices;
  std::string context, in_use, lag, values, fail_after, segment_addresses;
  std::optional<std::uint64_t> fail_call;
  std::optional<std::uint64_t> fail_request;
};

// The flag of how many devices there are.
Flag AddMachineFlags(Command& app, MachineFlags& flags);

// A size that a report prints, and where it is from: "measured", "published", "assumed" or "given".
struct MachineValue {
  std::uint64_t bytes = 0;
  std::string mark, source;
};

struct HollowMachine {
  std::string card;        // of the table; empty: none was named
  answers::RanAs ran_as;   // whose kernels programs take on it
  bool has_limit = false;  // false: room that no program fills
  std::uint64_t device_count = 1;
  MachineValue total, context;      // of one device, and of each process on it
  MachineValue in_use;              // of one device, beside the programs of the run
  bool has_unified_memory = false;  // it is the host's own
  std::string lag;                  // in words
  device::AddressOrder addresses = device::AddressOrder::kDriver;
  std::string values;  // what a read of made-up values gives: "zeros"
  std::string text;    // of the file `machine`

  // What the programs of the run may have of a device.
  std::uint64_t RoomBytes() const { return total.bytes - std::min(total.bytes, in_use.bytes); }
};

// Errors name the flag, or the profile and its line. Unavailable where the profile cannot be read.
absl::StatusOr<HollowMachine> ReadMachine(const MachineFlags& flags);
// The same with the kernels of a card of the table, in room that no program fills.
absl::StatusOr<HollowMachine> ReadMachineAs(const MachineFlags& flags, const gpus::Gpu& gpu);
// The same machine, in room that no program fills.
HollowMachine InAmpleRoom(HollowMachine machine);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_MACHINE_H_
