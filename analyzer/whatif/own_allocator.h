// What Ashlar's own allocator would have done with the same requests (policy:ashlar, docs/internals/policy.md): asked
// where a request failed, or the cache was returned to serve one, and no setting of the recorded allocator mends that.
//
//   absl::StatusOr<std::optional<OwnAllocator>> own = TryOwnAllocator(requests, settings, next, {rows, advice});
#ifndef ASHLAR_ANALYZER_WHATIF_OWN_ALLOCATOR_H_
#define ASHLAR_ANALYZER_WHATIF_OWN_ALLOCATOR_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/request.h"
#include "analyzer/analyses/steps/continuation.h"
#include "analyzer/whatif/advice.h"
#include "analyzer/whatif/what_if.h"

namespace ashlar::whatif {

struct OwnAllocator {
  WhatIfRow row = {};
  std::string sentence = {};            // what it would do
  std::optional<std::string> run = {};  // the line for the shell; only where it mends what was recorded
};

// What was recorded, and what is known of its own settings.
struct TriedSettings {
  const std::vector<WhatIfRow>& rows;  // by RunWhatIfs
  const Advice& advice;                // of them
  bool is_pytorch = false;             // the line is to start a program of PyTorch; else it sets the environment of one
                                       // that has our allocator
};

// nullopt where it is not asked for, was recorded itself, or cannot go with what the recorded conf says besides.
absl::StatusOr<std::optional<OwnAllocator>> TryOwnAllocator(const trace::RequestTrace& requests,
                                                            const WhatIfSettings& settings,
                                                            const analyses::Continuation* next,
                                                            const TriedSettings& tried);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_OWN_ALLOCATOR_H_
