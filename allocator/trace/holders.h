// Who held each live block of a snapshot, by its name in the program, at one moment: the key `ashlar_names` of a
// snapshot's file (docs/schemas/names.schema.json). Bytes are those of the snapshot's own blocks.
#ifndef ASHLAR_ALLOCATOR_TRACE_HOLDERS_H_
#define ASHLAR_ALLOCATOR_TRACE_HOLDERS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::trace {

struct Holder {
  std::string kind;       // "parameter", "graph", "local", ...; "not_found": nobody
  std::string name;       // "losses[]", "model.layers.*.weight"
  std::string file;       // of the variable's scope; empty: not known
  std::int64_t line = 0;  // 0: not known
  std::string function;
  std::uint64_t nodes = 0;  // of a graph
  std::string mode = {};  // "train", "eval", "mixed": of the module, or of those that a graph runs through; empty: none
  std::string container = {};  // the type of what holds the last element: "list", "deque", ...; empty: no element
  std::vector<std::string> traits = {};  // "optimized", "state_dict", "of_optimizer", "hooked": names.schema.json
  std::vector<std::string> variables =
      {};  // of the frames or functions that it keeps, through which it holds the blocks

  bool Is(absl::string_view trait) const { return std::find(traits.begin(), traits.end(), trait) != traits.end(); }

  bool operator==(const Holder&) const = default;
};

struct HeldBlock {
  std::uint64_t address = 0;
  std::uint32_t owner = 0;            // in Holders::holders
  std::vector<std::uint32_t> others;  // further names of the same block

  bool operator==(const HeldBlock&) const = default;
};

struct Holders {
  std::string when;  // "out_of_memory", "call", "exit", ...
  double seconds = 0;
  std::uint64_t objects = 0;  // that the walk met
  std::string bound;          // what ended it early: "time", "objects"; empty: nothing
  std::vector<Holder> holders;
  std::vector<HeldBlock> blocks;  // by address

  bool operator==(const Holders&) const = default;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_HOLDERS_H_
