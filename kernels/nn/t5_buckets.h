// The buckets of T5's relative positions (T5Attention._relative_position_bucket, compute_bias), an operation at a time.
#ifndef ASHLAR_KERNELS_NN_T5_BUCKETS_H_
#define ASHLAR_KERNELS_NN_T5_BUCKETS_H_

#include <cstdint>
#include <vector>

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

struct BucketRule {
  std::int64_t queries = 1, keys = 1;
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;
  bool is_bidirectional = true;
  bool has_positions = false;  // the queries' are given, and not counted here
};

// Of a key that lies `relative` tokens behind the query.
std::int64_t BucketOf(std::int64_t relative, const BucketRule& rule);

struct Buckets {
  Tensor index;              // (queries, keys) int64
  std::vector<Tensor> held;  // locals of compute_bias, which end with it
};
Buckets RelativeBuckets(Context& context, const BucketRule& rule);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_T5_BUCKETS_H_
