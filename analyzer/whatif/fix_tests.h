// Fix tests: a cause that was found is taken away, by a setting or by a change of the program's requests, and the run
// is replayed. If the symptom stays, the cause is at most possible. If it goes, the cause is proven where a setting or
// another call took it away and every block is still there; it is likely where its blocks were put elsewhere. Memory
// that is given back helps against whatever there is, and so says nothing for the cause.
//
//   std::vector<TestedCause> causes = *TestFixes(FindCauses(context), context, runs, settings);
//   causes.front().fix->removes_symptom
//
// The symptom is a request that fails; where none does, retries (for a retry storm); else the peak of reserved memory,
// of which the cause's bytes, at least half of them, must go. Both replays start from an empty allocator. Where the
// unchanged replay does not show the symptom (what was cached before the window took part), nothing is proven.
#ifndef ASHLAR_ANALYZER_WHATIF_FIX_TESTS_H_
#define ASHLAR_ANALYZER_WHATIF_FIX_TESTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/request.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/whatif/what_if.h"

namespace ashlar::whatif {

struct FixTest {
  std::string change;   // "without waiting for other streams"
  std::string setting;  // the same as for PYTORCH_CUDA_ALLOC_CONF; empty: the program must change
  bool is_setting = false;
  WhatIfRow before = {};
  WhatIfRow after = {};
  bool shows_symptom = false;  // before
  bool removes_symptom = false;
};

struct TestedCause {
  analyses::CauseFinding finding;
  std::optional<FixTest> fix = {};  // nullopt: no replay can take this cause away
};

// The run as requests: without the releases that the allocator made by itself, for replays that know the capacity, and
// with them.
struct RecordedRequests {
  const trace::RequestTrace* without_retries = nullptr;
  const trace::RequestTrace* as_recorded = nullptr;
  const analyses::Continuation* next = nullptr;  // where it ended in a request that failed: how it would have gone on
};

// All findings, in the order of FindCauses with what the tests did to their confidence. Of `settings`, `confs` is not
// used. An error is a replay's own.
absl::StatusOr<std::vector<TestedCause>> TestFixes(const std::vector<analyses::CauseFinding>& findings,
                                                   const analyses::CauseContext& context,
                                                   const RecordedRequests& requests, const WhatIfSettings& settings,
                                                   const Progress& progress = {});

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_FIX_TESTS_H_
