// The key `ashlar_names` of a snapshot: who held each live block, by its name (docs/schemas/names.schema.json).
#ifndef ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_HOLDERS_H_
#define ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_HOLDERS_H_

#include "allocator/trace/snapshot.h"
#include "analyzer/formats/pickle/pickle_document.h"
#include "analyzer/formats/pickle/pickle_writer.h"
#include "analyzer/formats/torch/torch_parts.h"

namespace ashlar::formats {

// Into snapshot.holders. What cannot be read is a note: the rest of the snapshot stands.
void ReadHolders(const pickle::Value& names, TorchContext* context);

// The value of the key, of a snapshot that has holders.
void WriteHolders(const trace::Snapshot& snapshot, pickle::PickleWriter& out);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_HOLDERS_H_
