// The answer of `ashlar bound`: how little memory the lifetimes of a trace need, against what was reserved
// (docs/guide/bound.md).
#ifndef ASHLAR_COMMANDS_BOUND_BOUND_H_
#define ASHLAR_COMMANDS_BOUND_BOUND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/packing/packing.h"
#include "analyzer/formats/plain/minimalloc_csv.h"
#include "analyzer/whatif/what_if.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {

struct BoundAnswer {
  std::string input;
  std::string source;
  bool is_bytes = true;  // false: a packing problem, whose sizes have no unit
  std::uint64_t buffers = 0;
  std::uint64_t lower_bound = 0;
  std::uint64_t packing_height = 0;  // of a checked packing
  std::uint64_t search_steps = 0;
  std::optional<std::uint64_t> reserved_bytes = {};  // peak; nullopt for a packing problem
  std::optional<std::uint64_t> given_height = {};    // of the offsets in the input, checked
  std::vector<whatif::WhatIfRow> what_if = {};       // the settings of the trace first
  std::vector<trace::Note> notes = {};
  formats::PackingProblem problem = {};  // with the offsets found: the certificate

  bool IsOptimal() const { return packing_height == lower_bound; }
};

// InvalidArgument where the offsets that a problem comes with are no packing; Internal where ours are not.
absl::StatusOr<BoundAnswer> BoundOfTrace(std::string input, const TracedRun& run, std::uint64_t max_steps,
                                         const whatif::Progress& progress = {});
absl::StatusOr<BoundAnswer> BoundOfProblem(std::string input, formats::PackingProblem problem, std::uint64_t max_steps,
                                           const whatif::Progress& progress = {});

// How much of what is reserved above the lower bound another setting saves; nullopt where nothing lies above it.
std::optional<double> GapClosed(const BoundAnswer& answer, const whatif::WhatIfRow& row);

}  // namespace ashlar::answers

namespace ashlar::report {

// Prints the answer of `ashlar bound` (docs/guide/bound.md), as text and as JSON: the same numbers in both.
//
//   std::cout << ToText(*BoundOfTrace("train.pickle", run, max_steps));

std::string ToText(const answers::BoundAnswer& report);
std::string ToJson(const answers::BoundAnswer& report);
std::string BoundSchema();  // docs/schemas/bound.schema.json

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_BOUND_BOUND_H_
