// The keys `ashlar_names` and `ashlar_peak_names` of a snapshot: who held each live block, by its name
// (docs/schemas/names.schema.json).
#ifndef ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_HOLDERS_H_
#define ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_HOLDERS_H_

#include <optional>

#include "allocator/trace/snapshot.h"
#include "analyzer/formats/pickle/pickle_document.h"
#include "analyzer/formats/pickle/pickle_writer.h"
#include "analyzer/formats/torch/torch_parts.h"

namespace ashlar::formats {

// Into `out`, of the context's snapshot. What cannot be read is a note: the rest of the snapshot stands.
void ReadHolders(const pickle::Value& names, TorchContext* context, std::optional<trace::Holders>* out);

// The value of a key. Its bytes are those of the blocks that the snapshot still has live.
void WriteHolders(const trace::Holders& names, const trace::Snapshot& snapshot, pickle::PickleWriter& out);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_HOLDERS_H_
