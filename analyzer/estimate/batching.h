// Makes batches of samples of varying length as a data loader does, and says to what they are padded.
//
//   fixed     every batch to the longest sample there may be
//   dynamic   samples shuffled, each batch to its own longest
//   uniform   as dynamic, of samples of about one length: shuffled, 50 batches at a time sorted by length (a quarter of
//             the epoch where that is less), the longest sample of all in the first batch. As group_by_length does
//             (transformers, trainer_pt_utils.py, get_length_grouped_indices)
#ifndef ASHLAR_ANALYZER_ESTIMATE_BATCHING_H_
#define ASHLAR_ANALYZER_ESTIMATE_BATCHING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analyzer/estimate/dry_run_options.h"
#include "analyzer/estimate/lengths.h"

namespace ashlar::estimate {

enum class Batching : std::uint8_t { kFixed, kDynamic, kUniform };
absl::string_view BatchingName(Batching batching);  // "fixed", "dynamic", "uniform"
// Errors list the names.
absl::StatusOr<Batching> ParseBatching(absl::string_view name);

// The batches of one epoch, in order, of `batch` samples each but for a smaller last one. `shuffle`: the same number is
// the same order of samples, whatever the batching.
std::vector<BatchShape> EpochOf(const Lengths& lengths, Batching batching, std::int64_t batch, std::uint64_t shuffle);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_BATCHING_H_
