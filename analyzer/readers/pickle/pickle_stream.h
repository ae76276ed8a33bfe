// Reads a pickle as pickle.h does, but for the lists of one list, which are long: their items are handed out as they
// are appended and dropped at once, so that a file of any length takes the memory of what is not in them.
//
//   {'segments': [...], 'device_traces': [[entry, entry, ...], [...]], ...}
//                                          └─ handed out ─┘
//
// What an item shares with later ones stays reachable: texts, and containers of which the sink says that it knows them.
// A file that refers back to anything else of an item that is gone, or is written in another order, is legal and nobody
// writes it: ReadStreamed says Aborted, and the caller reads it whole.
//
//   absl::Status status = ReadStreamed(bytes, limits, "device_traces", sink, document);
#ifndef ASHLAR_ANALYZER_READERS_PICKLE_PICKLE_STREAM_H_
#define ASHLAR_ANALYZER_READERS_PICKLE_PICKLE_STREAM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "analyzer/readers/pickle/pickle.h"
#include "analyzer/readers/pickle/pickle_direct.h"
#include "analyzer/readers/pickle/pickle_document.h"

namespace ashlar::readers::pickle {

class ItemSink {
 public:
  virtual ~ItemSink() = default;

  // The next items of the list with that number, in the order in which lists begin to have items. The items are dicts.
  // False: it cannot take them; the reading ends with Aborted.
  virtual bool Take(std::uint64_t list, const Value* begin, const Value* end) = 0;

  // An item that is not read yet, from its opcodes: Decode goes past it, and TakeDecoded takes it as the next of the
  // list, whose container that is, and says what is known of the containers that it puts into the memo. False of
  // Decode: the machine is to read it, and nothing has changed.
  virtual bool Decode(DirectItem&) { return false; }
  virtual bool TakeDecoded(std::uint64_t, std::uint64_t, DirectItem&) { return false; }

  // A number for a container that it knows what it needs of, else 0; equal numbers are equal for all that follows.
  virtual std::uint64_t Known(const Value& container) const = 0;
  // The items that were taken are gone, and with them all containers and texts from these numbers on.
  virtual void CutBack(const Document::Place& to) = 0;
  // A new container without items stands for the one that was known by that number.
  virtual void Rename(std::uint64_t known, std::uint64_t container) = 0;
};

// A list that was handed out has IsStreamedList in the document. Aborted as above; else the errors of Read.
absl::Status ReadStreamed(absl::string_view bytes, const Limits& limits, absl::string_view key, ItemSink& sink,
                          Document& document);

}  // namespace ashlar::readers::pickle

#endif  // ASHLAR_ANALYZER_READERS_PICKLE_PICKLE_STREAM_H_
