// Makes batches of samples of varying length as a data loader does, and says to what they are padded.
//
//   fixed     every batch to the longest sample there may be
//   dynamic   samples shuffled, each batch to its own longest
//   uniform   as dynamic, of samples of about one length: shuffled, 50 batches at a time sorted by length (a quarter of
//             the epoch where that is less), the longest sample of all in the first batch. As group_by_length does
//             (transformers, trainer_pt_utils.py, get_length_grouped_indices)
#ifndef ASHLAR_ESTIMATOR_BATCHING_H_
#define ASHLAR_ESTIMATOR_BATCHING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "estimator/dry_run.h"

namespace ashlar::estimate {

// The lengths of a data set's samples, in tokens: a normal distribution cut at both ends, or a list.
//
//   absl::StatusOr<Lengths> lengths = NormalLengths("mean:80,sd:40,max:512", {.samples = 1000, .seed = 1});
struct LengthOptions {
  std::optional<std::int64_t> samples = {};  // of an epoch; nullopt: 1000, or all of a list
  std::uint64_t seed = 0;
};

struct Lengths {
  std::string text;                   // "mean:80,sd:40,max:512", or the file's name
  std::vector<std::int64_t> samples;  // of one epoch, 1 or more each
  std::int64_t longest = 0;           // that a sample may have; fixed batching pads to it
  std::uint64_t cut = 0;              // samples that were longer than the model's or the caller's most

  // Longer ones are cut to `most`, as a tokenizer truncates.
  void CutTo(std::int64_t most);
};

// "mean:80,sd:40,max:512", "min:" too (default 1): drawn from a normal distribution, rounded, and set to the nearer end
// where they lie outside. Errors say which part of the text is wrong.
absl::StatusOr<Lengths> NormalLengths(absl::string_view text, const LengthOptions& options);

// One length a line; empty lines and lines that begin with # are left out. With `samples` that many are drawn from
// them, each time from all. Errors begin with the line.
absl::StatusOr<Lengths> ListedLengths(absl::string_view name, absl::string_view text, const LengthOptions& options);

enum class Batching : std::uint8_t { kFixed, kDynamic, kUniform };
absl::string_view BatchingName(Batching batching);  // "fixed", "dynamic", "uniform"
// Errors list the names.
absl::StatusOr<Batching> ParseBatching(absl::string_view name);

// The batches of one epoch, in order, of `batch` samples each but for a smaller last one. `shuffle`: the same number is
// the same order of samples, whatever the batching.
std::vector<BatchShape> EpochOf(const Lengths& lengths, Batching batching, std::int64_t batch, std::uint64_t shuffle);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_BATCHING_H_
