// Whose the memory of a device is: by the library whose code asked, and what is in use beside that. Of a program that
// asks the device itself, and of the libraries beside PyTorch's allocator.
//
//   const ByLibrary whose = ByLibraryAt(timeline.StateAt(moment), snapshot, /*device=*/0);
//   whose.owners.front().owner   // "NCCL"
//
// Sizes are bytes.
#ifndef ASHLAR_COMMANDS_EXPLAIN_BY_LIBRARY_H_
#define ASHLAR_COMMANDS_EXPLAIN_BY_LIBRARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/trace/snapshot.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::answers {

struct OwnedBytes {
  std::string owner;  // as libraries::OwnerOf has it
  std::string file;   // of the code that asked; empty: not known
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

struct ByLibrary {
  std::vector<OwnedBytes> owners;  // most bytes first
  // Of all processes. By the driver's word, when most had been asked for; nullopt: it was not asked.
  std::optional<std::uint64_t> in_use_bytes = {};
  std::optional<std::uint64_t> rest_bytes = {};  // of that, what the program had not asked for
};

ByLibrary ByLibraryAt(const timeline::State& state, const trace::Snapshot& snapshot, int device);

// As a snapshot of PyTorch's allocator says it, of the moment when it was made (trace::DeviceLibraryKey); nullopt where
// it says of no library but that allocator. `in_use_bytes`: of the device, by all; nullopt: not known.
std::optional<ByLibrary> ByLibraryBeside(const trace::Snapshot& snapshot, int device,
                                         std::optional<std::uint64_t> in_use_bytes);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_BY_LIBRARY_H_
