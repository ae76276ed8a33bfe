// Reads PyTorch's CUDA memory snapshots (torch.cuda.memory._dump_snapshot and memory_snapshot), every generation:
//
//   up to 1.13     a bare list of segments; from 1.13 blocks carry their history
//   2.0            a dict of segments and device_traces; blocks without addresses, with history
//   2.1, 2.2       blocks with addresses and frames
//   2.3 to 2.6     + allocator_settings, + external_annotations
//   2.7 on         + compile_context, user_metadata, pool ids of entries, host segments
//
// Blocks are checked to tile their segments, segments not to overlap. A key or action this version does not know is
// a note of the snapshot, counted; what cannot be read is an error that names the path and the byte offset:
// "device_traces[0][17]: 'addr' is missing (byte 1234)". Nothing in the file is executed.
//
//   absl::StatusOr<trace::Snapshot> snapshot = ReadTorchSnapshot(bytes);
#ifndef ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_SNAPSHOT_H_
#define ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_SNAPSHOT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/byte_sink.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/read_limits.h"

namespace ashlar::formats {

// Takes little more memory than the snapshot: entries become events as they are read, and `pickle` may be a mapped file
// of any length (mapped_file.h).
absl::StatusOr<trace::Snapshot> ReadTorchSnapshot(absl::string_view pickle, const ReadLimits& limits = {});

// The first of the two ways: Aborted where the file must be read whole. `*decoded` becomes the number of entries that
// were read from their opcodes alone (torch_stream.h).
absl::StatusOr<trace::Snapshot> ReadTorchSnapshotStreamed(absl::string_view pickle, const ReadLimits& limits = {},
                                                          std::uint64_t* decoded = nullptr);

// The same snapshot or error, by a document of the whole file, of several times its size. What ReadTorchSnapshot does
// with files that are written as no pickler writes them.
absl::StatusOr<trace::Snapshot> ReadTorchSnapshotWhole(absl::string_view pickle);

// Writes a snapshot as PyTorch writes its own: the file loads in Python's pickle module and in PyTorch's memory
// viewer, and ReadTorchSnapshot reads it back field for field.
//
// Not written: notes, and what the file itself tells (traits). Settings are written from their printed form: "True",
// "12", "0.8" and "1:0,2:4" become a bool, a number, a float and a dict again.

std::string WriteTorchSnapshot(const trace::Snapshot& snapshot);
// The same in pieces: a large snapshot is never whole in memory a second time.
void WriteTorchSnapshot(const trace::Snapshot& snapshot, ByteSink& out);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_SNAPSHOT_H_
