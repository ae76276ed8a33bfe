// The lengths of a data set's samples, in tokens: a normal distribution cut at both ends, or a list.
//
//   absl::StatusOr<Lengths> lengths = NormalLengths("mean:80,sd:40,max:512", {.samples = 1000, .seed = 1});
#ifndef ASHLAR_ANALYZER_ESTIMATE_LENGTHS_H_
#define ASHLAR_ANALYZER_ESTIMATE_LENGTHS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::estimate {

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

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_LENGTHS_H_
