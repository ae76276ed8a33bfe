// A snapshot made smaller, so that a viewer opens it: one device, large blocks, what some lines allocated. What is left
// is a snapshot that fits together: a block and its events go or stay as one, and the space of a block that goes is
// free. Segments and their events stay.
//
//   SnapshotCut cut = CutSnapshot(snapshot, {.least_bytes = 10 * kMiB, .stack_text = "model.py"});
//   WriteTorchSnapshot(cut.snapshot, out);
//
// A replay of it is not the recorded run: what is gone no longer takes its place. Pure function.
#ifndef ASHLAR_COMMANDS_CONVERT_SNAPSHOT_CUT_H_
#define ASHLAR_COMMANDS_CONVERT_SNAPSHOT_CUT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "allocator/trace/snapshot.h"

namespace ashlar::answers {

struct CutRule {
  std::optional<int> device = {};  // this one alone
  std::uint64_t least_bytes = 0;   // that a block's request has (its size, where that is not known)
  std::string stack_text = {};     // in one of the frames of the allocation, as "file:line function"

  bool KeepsAllBlocks() const { return least_bytes == 0 && stack_text.empty(); }
};

struct SnapshotCut {
  trace::Snapshot snapshot;
  bool has_stack_text = false;  // the text of the rule is in a frame
  std::uint64_t events_gone = 0;
  std::uint64_t blocks_gone = 0;  // of those in use at the end
};

SnapshotCut CutSnapshot(const trace::Snapshot& snapshot, const CutRule& rule);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_CONVERT_SNAPSHOT_CUT_H_
