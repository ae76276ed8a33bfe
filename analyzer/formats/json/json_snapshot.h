// PyTorch's snapshots as JSON: what `json.dump(torch.cuda.memory._snapshot(), file)` writes. The same values as in a
// pickle, but for pairs, which are lists; so it is read by the reader of pickles, and held to the same rules.
#ifndef ASHLAR_ANALYZER_FORMATS_JSON_JSON_SNAPSHOT_H_
#define ASHLAR_ANALYZER_FORMATS_JSON_JSON_SNAPSHOT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/read_limits.h"

namespace ashlar::formats {

// By the beginning: an object with "segments" or "device_traces" first, or a list of segments.
bool IsJsonSnapshot(absl::string_view bytes);

// InvalidArgument: no JSON (with the byte), or no snapshot. Thread-safe.
absl::StatusOr<trace::Snapshot> ReadJsonSnapshot(absl::string_view bytes, const ReadLimits& limits = {});

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_JSON_JSON_SNAPSHOT_H_
