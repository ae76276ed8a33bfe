// Packing problems as google/minimalloc reads and writes them: CSV with a header line, one buffer a line.
//
//   id,lower,upper,size,offset
//   b1,0,3,4,8                     alive in [0, 3), 4 units large, placed at 8
//
// The columns may stand in any order; `offset` may be missing. Lines may end in CR LF; empty lines are skipped.
#ifndef ASHLAR_ANALYZER_FORMATS_PLAIN_MINIMALLOC_CSV_H_
#define ASHLAR_ANALYZER_FORMATS_PLAIN_MINIMALLOC_CSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/request.h"

namespace ashlar::formats {

struct PackingProblem {
  std::vector<std::string> ids = {};
  std::vector<trace::Lifetime> buffers = {};
  std::vector<std::uint64_t> offsets = {};  // one a buffer, or none at all
};

// All sizes together are below 2^62. Errors (InvalidArgument) say line:column, what is wrong and the mend.
absl::StatusOr<PackingProblem> ParseMinimallocCsv(absl::string_view text);

// With the column `offset` where there are offsets.
std::string WriteMinimallocCsv(const PackingProblem& problem);

// Whether the first line is such a header.
bool IsMinimallocCsv(absl::string_view text);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_PLAIN_MINIMALLOC_CSV_H_
