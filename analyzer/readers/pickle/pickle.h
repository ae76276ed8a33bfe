// Reads a pickle of protocol 2 to 5 that holds plain data (dicts, lists, tuples, sets, numbers, texts). Nothing is
// ever executed: an opcode that would import or call something is refused by name and byte offset.
//
// Memory is bounded by a small multiple of the input: declared lengths are checked against the bytes that are left
// before anything is allocated, and a shared reference costs one value however large what it refers to.
//
//   absl::StatusOr<pickle::Document> document = pickle::Read(bytes);   // `bytes` must outlive the document
#ifndef ASHLAR_ANALYZER_READERS_PICKLE_PICKLE_H_
#define ASHLAR_ANALYZER_READERS_PICKLE_PICKLE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analyzer/readers/pickle/pickle_document.h"

namespace ashlar::readers::pickle {

struct Limits {
  std::uint64_t max_values = std::uint64_t{1} << 30;  // items, texts, containers and memo entries, at most 2^31
};

// InvalidArgument: not such a pickle (code, unknown opcode, broken structure); DataLoss: truncated;
// ResourceExhausted: over the limits. Each names the byte offset.
absl::StatusOr<Document> Read(absl::string_view bytes, const Limits& limits = {});

}  // namespace ashlar::readers::pickle

#endif  // ASHLAR_ANALYZER_READERS_PICKLE_PICKLE_H_
