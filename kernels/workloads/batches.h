// The source of batches: how long their sequences are, and made-up tokens.
//
//   LengthSource lengths = *LengthSource::Parse("uniform:16-128", seed);
//   const std::int64_t length = lengths.Longest(batch);   // a batch padded to its longest
#ifndef ASHLAR_KERNELS_WORKLOADS_BATCHES_H_
#define ASHLAR_KERNELS_WORKLOADS_BATCHES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/rng.h"
#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

class LengthSource {
 public:
  // "512" or "fixed:512"; "uniform:16-512"; "skewed:16-512": many short, few long (the logarithm is uniform). Errors
  // name the text and the forms.
  static absl::StatusOr<LengthSource> Parse(absl::string_view text, std::uint64_t seed);

  std::int64_t Next();
  std::int64_t Longest(std::int64_t batch);
  std::int64_t longest() const { return high_; }
  // Whether a model of so many positions takes the longest; the error is --lengths'.
  absl::Status CheckFits(std::int64_t positions) const;

 private:
  LengthSource(std::int64_t low, std::int64_t high, bool is_skewed, std::uint64_t seed)
      : low_(low), high_(high), is_skewed_(is_skewed), rng_(seed) {}

  std::int64_t low_, high_;
  bool is_skewed_;
  Rng rng_;
};

// Tokens that can be learned: position s of a sequence holds (first + s * stride) mod `below`, first and stride drawn
// for each sequence. int64, on the device.
Tensor TokenIds(Context& context, Dims sizes, std::int64_t below, Rng& rng);
// Each of `classes` is a rule of the sequence's first token: (B) int64 from ids' own numbers.
struct LabelledBatch {
  Tensor ids;     // (B, S)
  Tensor labels;  // (B): the first token modulo the classes
};
LabelledBatch Labelled(Context& context, std::int64_t batch, std::int64_t length, std::int64_t below,
                       std::int64_t classes, Rng& rng);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_WORKLOADS_BATCHES_H_
