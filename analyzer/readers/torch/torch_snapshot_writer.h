// Writes a snapshot as PyTorch writes its own: the file loads in Python's pickle module and in PyTorch's memory
// viewer, and ReadTorchSnapshot reads it back field for field.
//
// Not written: notes, and what the file itself tells (traits). Settings are written from their printed form: "True",
// "12", "0.8" and "1:0,2:4" become a bool, a number, a float and a dict again.
#ifndef ASHLAR_ANALYZER_READERS_TORCH_TORCH_SNAPSHOT_WRITER_H_
#define ASHLAR_ANALYZER_READERS_TORCH_TORCH_SNAPSHOT_WRITER_H_

#include <string>

#include "allocator/base/byte_sink.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::readers {

std::string WriteTorchSnapshot(const trace::Snapshot& snapshot);
// The same in pieces: a large snapshot is never whole in memory a second time.
void WriteTorchSnapshot(const trace::Snapshot& snapshot, ByteSink& out);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_TORCH_TORCH_SNAPSHOT_WRITER_H_
