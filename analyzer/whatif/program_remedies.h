// Names the change that the program itself can make for a cause that was found: one sentence, the Python to write, and
// the bytes.
//
//   for (const ProgramRemedy& remedy : ProgramRemedies(tested)) std::cout << remedy.sentence;
//
// Bytes are the finding's own, and what the cause's fix test (fix_tests.h) took off the peak where a replay made the
// same change; no others. A cause has a remedy where it was found as likely or proven, and the program, not a setting,
// can mend it.
#ifndef ASHLAR_ANALYZER_WHATIF_PROGRAM_REMEDIES_H_
#define ASHLAR_ANALYZER_WHATIF_PROGRAM_REMEDIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/whatif/fix_tests.h"

namespace ashlar::whatif {

struct ProgramRemedy {
  analyses::CauseKind cause{};
  std::string sentence;
  std::vector<std::string> python = {};
  std::uint64_t bytes = 0;                           // that the cause explains at the moment looked at
  std::optional<std::uint64_t> replayed_bytes = {};  // off the peak of reserved memory; nullopt: not replayed
  bool is_proven = false;                            // a replay with the change no longer shows the symptom
  std::vector<std::string> from_outside = {};        // changes of `ashlar fit` that make it from outside
};

// In the order of `causes`: the change of the first comes first.
std::vector<ProgramRemedy> ProgramRemedies(absl::Span<const TestedCause> causes);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_PROGRAM_REMEDIES_H_
