// Tiled attention against attention in float64 with all its scores, and against the chain of ops that stores them.
#include <cmath>
#include <limits>

#include "tests/kernels/ops_suite.h"

namespace ashlar::ops {
namespace {

struct Shape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t key_heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t size = 1;
  std::vector<int> query_lengths = {};
  std::vector<int> key_lengths = {};
  bool is_causal = false;
  double scale = 0.3;
};

struct Result {
  Numbers out;
  Numbers log_sum_exp;
};

// kept[i]: the factor of score i (b, h, query, key), 1 without dropout.
Result AttentionOf(const Shape& s, const Numbers& q, const Numbers& k, const Numbers& v, const Numbers& kept) {
  Result result;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t queries = s.query_lengths.empty() ? s.queries : s.query_lengths[static_cast<std::size_t>(b)];
    const std::int64_t keys = s.key_lengths.empty() ? s.keys : s.key_lengths[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t key_row = (b * s.key_heads + h / (s.heads / s.key_heads)) * s.keys;
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::int64_t query_row = (b * s.heads + h) * s.queries + i;
        Numbers out(static_cast<std::size_t>(s.size), 0);
        double sum = 0;
        for (std::int64_t j = 0; i < queries && j < keys; ++j) {
          if (s.is_causal && j > i + keys - queries) break;
          double score = 0;
          for (std::int64_t d = 0; d < s.size; ++d) {
            score += q[static_cast<std::size_t>(query_row * s.size + d)] *
                     k[static_cast<std::size_t>((key_row + j) * s.size + d)];
          }
          const double weight = std::exp(s.scale * score);
          sum += weight;
          const double factor = weight * (kept.empty() ? 1 : kept[static_cast<std::size_t>(query_row * s.keys + j)]);
          for (std::int64_t d = 0; d < s.size; ++d) {
            out[static_cast<std::size_t>(d)] += factor * v[static_cast<std::size_t>((key_row + j) * s.size + d)];
          }
        }
        for (const double x : out) result.out.push_back(sum == 0 ? 0 : x / sum);
        result.log_sum_exp.push_back(std::log(sum));
      }
    }
  }
  return result;
}

const Shape kShapes[] = {
    {},
    {.batch = 2, .heads = 3, .key_heads = 3, .queries = 67, .keys = 67, .size = 64, .is_causal = true},
    {.batch = 1, .heads = 4, .key_heads = 2, .queries = 5, .keys = 131, .size = 40, .is_causal = true},
    {.batch = 3,
     .heads = 2,
     .key_heads = 1,
     .queries = 70,
     .keys = 65,
     .size = 32,
     .query_lengths = {70, 1, 33},
     .key_lengths = {65, 64, 0}},
    {.batch = 2,
     .heads = 2,
     .key_heads = 2,
     .queries = 40,
     .keys = 50,
     .size = 128,
     .query_lengths = {40, 17},
     .key_lengths = {9, 50},
     .is_causal = true},
    {.batch = 1, .heads = 1, .key_heads = 1, .queries = 33, .keys = 20, .size = 256},
};

class AttentionSuite : public OpsSuite {
 protected:
  // (B, H, S, D), laid out as a projection leaves it: (B, S, H, D).
  static Dims Order() { return {0, 2, 1, 3}; }

  AttentionInputs Inputs(const Shape& s, DType dtype) {
    AttentionInputs in = {.query = Random({s.batch, s.heads, s.queries, s.size}, dtype, -1, 1, Order()),
                          .key = Random({s.batch, s.key_heads, s.keys, s.size}, dtype, -1, 1, Order()),
                          .value = Random({s.batch, s.key_heads, s.keys, s.size}, dtype, -1, 1, Order()),
                          .scale = s.scale,
                          .is_causal = s.is_causal};
    const auto lengths = [&](const std::vector<int>& of) {
      return Make({s.batch}, DType::kInt32, Numbers(of.begin(), of.end()));
    };
    if (!s.query_lengths.empty()) in.query_lengths = lengths(s.query_lengths);
    if (!s.key_lengths.empty()) in.key_lengths = lengths(s.key_lengths);
    return in;
  }

  // The factor of each score, from a Dropout of ones the size of the scores.
  Numbers Kept(const Shape& s, double p, RandomKey key) {
    const Dims sizes = {s.batch, s.heads, s.queries, s.keys};
    const View ones = Make(sizes, DType::kFloat32, Numbers(static_cast<std::size_t>(ElementCount(sizes)), 1));
    const View mask = Poisoned(sizes, DType::kBool);
    Run(Dropout{.in = ones, .p = p, .key = key, .out = ones, .mask = mask});
    Numbers kept = Values(mask);
    for (double& factor : kept) factor /= 1 - p;
    return kept;
  }
};

TEST_F(AttentionSuite, TiledForward) {
  for (const Shape& s : kShapes) {
    for (const DType dtype : kFloats) {
      for (const double p : {0.0, 0.25}) {
        SCOPED_TRACE(testing::Message() << s.queries << " x " << s.keys << " " << std::string(NameOf(dtype)) << " "
                                        << p);
        AttentionInputs in = Inputs(s, dtype);
        in.dropout_p = p;
        in.random = {.seed = 77, .offset = 12};
        const View out = Poisoned(in.query.sizes, dtype, Order());
        const View log_sum_exp = Poisoned({s.batch, s.heads, s.queries}, DType::kFloat32);
        Run(TiledAttention{.inputs = in, .out = out, .log_sum_exp = log_sum_exp});
        const Numbers kept = p > 0 ? Kept(s, p, in.random) : Numbers();
        const Result want = AttentionOf(s, Values(in.query), Values(in.key), Values(in.value), kept);
        Expect(out, want.out, 12);
        Expect(log_sum_exp, want.log_sum_exp, 12);
        View not_wanted = log_sum_exp;
        not_wanted.data = nullptr;
        const View again = Poisoned(out.sizes, dtype);
        Run(TiledAttention{.inputs = in, .out = again, .log_sum_exp = not_wanted});
        EXPECT_EQ(Values(again), Values(out));
      }
    }
  }
}

TEST_F(AttentionSuite, TiledBackwardByFiniteDifferences) {
  const Shape shapes[] = {
      {.batch = 1, .heads = 2, .key_heads = 1, .queries = 4, .keys = 6, .size = 3, .is_causal = true},
      {.batch = 2,
       .heads = 1,
       .key_heads = 1,
       .queries = 5,
       .keys = 4,
       .size = 4,
       .query_lengths = {5, 2},
       .key_lengths = {3, 4}},
  };
  for (const Shape& s : shapes) {
    for (const double p : {0.0, 0.4}) {
      AttentionInputs in = Inputs(s, DType::kFloat32);
      in.dropout_p = p;
      in.random = {.seed = 5, .offset = 9};
      const View out = Poisoned(in.query.sizes, DType::kFloat32);
      const View log_sum_exp = Poisoned({s.batch, s.heads, s.queries}, DType::kFloat32);
      const View grad = Random(in.query.sizes, DType::kFloat32);
      Run(TiledAttention{.inputs = in, .out = out, .log_sum_exp = log_sum_exp});
      const TiledAttentionBackward backward = {.inputs = in,
                                               .out = out,
                                               .log_sum_exp = log_sum_exp,
                                               .grad = grad,
                                               .grad_query = Poisoned(in.query.sizes, DType::kFloat32, Order()),
                                               .grad_key = Poisoned(in.key.sizes, DType::kFloat32, Order()),
                                               .grad_value = Poisoned(in.key.sizes, DType::kFloat32)};
      Run(backward);
      const Numbers kept = p > 0 ? Kept(s, p, in.random) : Numbers();
      const Numbers q = Values(in.query);
      const Numbers k = Values(in.key);
      const Numbers v = Values(in.value);
      const Numbers g = Values(grad);
      const auto loss = [&](const Numbers& qs, const Numbers& ks, const Numbers& vs) {
        return Dot(AttentionOf(s, qs, ks, vs, kept).out, g);
      };
      Expect(backward.grad_query, Slopes([&](const Numbers& x) { return loss(x, k, v); }, q), 40);
      Expect(backward.grad_key, Slopes([&](const Numbers& x) { return loss(q, x, v); }, k), 40);
      Expect(backward.grad_value, Slopes([&](const Numbers& x) { return loss(q, k, x); }, v), 40);
    }
  }
}

// The gradients of larger shapes and half types, by the formulas in float64.
TEST_F(AttentionSuite, TiledBackwardOfEveryShapeAndType) {
  for (const Shape& s : kShapes) {
    for (const DType dtype : kFloats) {
      SCOPED_TRACE(testing::Message() << s.queries << " x " << s.keys << " " << std::string(NameOf(dtype)));
      const AttentionInputs in = Inputs(s, dtype);
      const View out = Poisoned(in.query.sizes, dtype);
      const View log_sum_exp = Poisoned({s.batch, s.heads, s.queries}, DType::kFloat32);
      const View grad = Random(in.query.sizes, dtype, -1, 1, Order());
      Run(TiledAttention{.inputs = in, .out = out, .log_sum_exp = log_sum_exp});
      const TiledAttentionBackward backward = {.inputs = in,
                                               .out = out,
                                               .log_sum_exp = log_sum_exp,
                                               .grad = grad,
                                               .grad_query = Poisoned(in.query.sizes, dtype),
                                               .grad_key = Poisoned(in.key.sizes, dtype),
                                               .grad_value = Poisoned(in.key.sizes, dtype, Order())};
      Run(backward);
      const std::vector<unsigned char> once = Bytes(backward.grad_key);
      Run(backward);
      EXPECT_EQ(Bytes(backward.grad_key), once) << "a gradient differs from run to run";
      const Numbers q = Values(in.query);
      const Numbers k = Values(in.key);
      const Numbers v = Values(in.value);
      const Numbers g = Values(grad);
      const Result forward = AttentionOf(s, q, k, v, {});
      Numbers grad_query(q.size(), 0);
      Numbers grad_key(k.size(), 0);
      Numbers grad_value(k.size(), 0);
      for (std::int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
        const std::int64_t b = row / s.queries / s.heads;
        const std::int64_t h = row / s.queries % s.heads;
        const std::int64_t i = row % s.queries;
        const std::int64_t queries = s.query_lengths.empty() ? s.queries : s.query_lengths[static_cast<std::size_t>(b)];
        const std::int64_t keys = s.key_lengths.empty() ? s.keys : s.key_lengths[static_cast<std::size_t>(b)];
        if (i >= queries) continue;
        const auto at = [&](std::int64_t r, std::int64_t d) { return static_cast<std::size_t>(r * s.size + d); };
        double delta = 0;
        for (std::int64_t d = 0; d < s.size; ++d) delta += g[at(row, d)] * forward.out[at(row, d)];
        for (std::int64_t j = 0; j < keys && !(s.is_causal && j > i + keys - queries); ++j) {
          const std::int64_t key_row = (b * s.key_heads + h / (s.heads / s.key_heads)) * s.keys + j;
          double score = 0;
          double slope = 0;
          for (std::int64_t d = 0; d < s.size; ++d) score += q[at(row, d)] * k[at(key_row, d)];
          for (std::int64_t d = 0; d < s.size; ++d) slope += g[at(row, d)] * v[at(key_row, d)];
          const double weight = std::exp(s.scale * score - forward.log_sum_exp[static_cast<std::size_t>(row)]);
          slope = s.scale * weight * (slope - delta);
          for (std::int64_t d = 0; d < s.size; ++d) {
            grad_query[at(row, d)] += slope * k[at(key_row, d)];
            grad_key[at(key_row, d)] += slope * q[at(row, d)];
            grad_value[at(key_row, d)] += weight * g[at(row, d)];
          }
        }
      }
      Expect(backward.grad_query, grad_query, 30);
      Expect(backward.grad_key, grad_key, 30);
      Expect(backward.grad_value, grad_value, 30);
    }
  }
}

TEST_F(AttentionSuite, TiledAgreesWithStoredScores) {
  const Shape s = {.batch = 1, .heads = 6, .key_heads = 6, .queries = 90, .keys = 90, .size = 32, .is_causal = true};
  AttentionInputs in = Inputs(s, DType::kFloat32);
  for (View* view : {&in.query, &in.key, &in.value}) *view = Make(view->sizes, DType::kFloat32, Values(*view));
  in.dropout_p = 0.1;
  in.random = {.seed = 3, .offset = 1000};
  const View out = Poisoned(in.query.sizes, DType::kFloat32);
  const View log_sum_exp = Poisoned({1, 6, 90}, DType::kFloat32);
  Run(TiledAttention{.inputs = in, .out = out, .log_sum_exp = log_sum_exp});
  // Batch and heads are one dim; the keys turned are a view.
  const auto heads = [](const View& view) { return Contiguous(view.data, view.dtype, {6, 90, 32}); };
  View keys = heads(in.key);
  std::swap(keys.sizes[1], keys.sizes[2]);
  std::swap(keys.strides[1], keys.strides[2]);
  const View scores = Poisoned({6, 90, 90}, DType::kFloat32);
  const View mask = Poisoned({6, 90, 90}, DType::kBool);
  const View stored = Poisoned({6, 90, 32}, DType::kFloat32);
  Run(MatMul{.left = heads(in.query), .right = keys, .out = scores});
  Run(Softmax{.in = scores, .is_causal = true, .scale = s.scale, .out = scores});
  Run(Dropout{.in = scores, .p = 0.1, .key = in.random, .out = scores, .mask = mask});
  Run(MatMul{.left = scores, .right = heads(in.value), .out = stored});
  Expect(out, Values(stored), 16);
}

}  // namespace
}  // namespace ashlar::ops
