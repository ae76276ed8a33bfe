// What stands in a snapshot beside the device's blocks: the texts that the program put on them, and the pinned memory
// of the host.
//
//   LinesByLabel(timeline, moment, snapshot.labels, 5)
//     "loading" (metadata)             16.0 MiB in 4 blocks
//     "the first activation" (annotation)  256 KiB in 1 block
#ifndef ASHLAR_COMMANDS_EXPLAIN_LABELLED_MEMORY_H_
#define ASHLAR_COMMANDS_EXPLAIN_LABELLED_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

enum class LabelKind : std::uint8_t {
  kMetadata,    // the thread's, when the block was allocated (_set_memory_metadata); such lines share no block
  kAnnotation,  // put on the block while it lived (_annotate_tensor); a block counts in each of its own
  kInternal,    // the allocator's own mark
};
// "metadata", "annotation", "internal".
const char* LabelKindName(LabelKind kind);

struct LabelLine {
  std::string label;
  LabelKind kind = LabelKind::kMetadata;
  std::uint64_t bytes = 0;  // block sizes
  std::uint64_t blocks = 0;
};

// The blocks that are live after `moment`, most bytes first, `most` of each kind. Blocks older than the window have no
// label there; empty where no live block has one.
std::vector<LabelLine> LinesByLabel(const timeline::Timeline& timeline, timeline::EventIndex moment,
                                    const trace::LabelTable& labels, std::size_t most);

// Pinned memory of the host at the end, bytes. The peaks are those of the recorded events; nullopt where these and the
// segments contradict each other.
struct HostFigures {
  std::uint64_t held_bytes = 0;    // obtained from the system
  std::uint64_t in_use_bytes = 0;  // by the program
  std::optional<std::uint64_t> peak_held_bytes = {};
  std::optional<std::uint64_t> peak_in_use_bytes = {};
  std::uint64_t blocks = 0;  // in use
  std::uint64_t events = 0;  // recorded
};
std::optional<HostFigures> FiguresOf(const trace::HostMemory& host);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_LABELLED_MEMORY_H_
