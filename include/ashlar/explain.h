// `ashlar explain` as a function: the component analyzer (ashlar::analyzer).
//
//   absl::StatusOr<std::string> text = ashlar::ExplainFile("snapshot.pickle");
//   absl::StatusOr<std::string> json = ashlar::ExplainBytes(log, {.as_json = true});
//
// The input is a PyTorch memory snapshot, a recording (recorder.h), a request trace, or a text with an out-of-memory
// message; a file may be compressed by gzip. docs/guide/explain.md says how to read the text,
// docs/schemas/explain.schema.json the keys of the JSON. Errors: kInvalidArgument and kDataLoss name the fault in the
// input and its place; kNotFound and others are the file's; kOutOfRange is an option that does not go with the input.
// It may take minutes and gigabytes on large traces. Threads: any, independently.
#ifndef ASHLAR_EXPLAIN_H_
#define ASHLAR_EXPLAIN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ashlar/export.h"

namespace ashlar {

struct ExplainOptions {
  bool as_json = false;                                   // else text for one screen
  std::optional<std::uint64_t> capacity_bytes = {};       // of the device, where the input does not say
  std::optional<double> memory_fraction = {};             // that the program ran under
  std::optional<int> device = {};                         // of a snapshot; default: the one that holds most
  std::optional<std::uint64_t> device_used_bytes = {};    // by all processes together, as nvidia-smi shows it
  std::function<void(const std::string&)> progress = {};  // told what is being done, on the calling thread
};

ASHLAR_EXPORT absl::StatusOr<std::string> ExplainBytes(absl::string_view bytes, const ExplainOptions& options = {});
// "-" is standard input.
ASHLAR_EXPORT absl::StatusOr<std::string> ExplainFile(const std::string& path, const ExplainOptions& options = {});

}  // namespace ashlar

#endif  // ASHLAR_EXPLAIN_H_
