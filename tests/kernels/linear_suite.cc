// Products, norms, rotary positions, softmax and dropout, in every backend of the suite.
#include <cmath>
#include <limits>

#include "tests/kernels/ops_suite.h"

namespace ashlar::ops {
namespace {

std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

// scale * left x right + out_scale * old + bias for one batch entry of row-order matrices.
Numbers Product(const double* left, const double* right, std::int64_t m, std::int64_t k, std::int64_t n) {
  Numbers out(At(m * n), 0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t p = 0; p < k; ++p) out[At(i * n + j)] += left[i * k + p] * right[p * n + j];
    }
  }
  return out;
}

TEST_F(OpsSuite, MatMulOfOddSizesTurnedAndBatched) {
  struct Case {
    std::int64_t batch, m, k, n;
  };
  const Case cases[] = {{0, 1, 1, 1},    {0, 5, 3, 17},   {0, 67, 300, 131},
                        {0, 130, 70, 1}, {3, 33, 19, 40}, {2, 1, 64, 7}};
  for (const Case& c : cases) {
    for (const DType dtype : kFloats) {
      for (int turned = 0; turned < 4; ++turned) {
        SCOPED_TRACE(testing::Message() << c.batch << " x " << c.m << " x " << c.k << " x " << c.n << " turned "
                                        << turned);
        const bool is_batched = c.batch > 0;
        const auto order = [&](bool is_turned) -> Dims {
          if (is_batched) return is_turned ? Dims{0, 2, 1} : Dims{0, 1, 2};
          return is_turned ? Dims{1, 0} : Dims{0, 1};
        };
        const auto sizes = [&](std::int64_t a, std::int64_t b) -> Dims {
          return is_batched ? Dims{c.batch, a, b} : Dims{a, b};
        };
        const View left = Random(sizes(c.m, c.k), dtype, -1, 1, order((turned & 1) != 0));
        const View right = Random(sizes(c.k, c.n), dtype, -1, 1, order((turned & 2) != 0));
        const bool has_bias = turned != 1;
        const double out_scale = turned == 2 ? 0.5 : 0;
        const View bias = turned == 3 ? Random({c.m, c.n}, dtype) : Random({c.n}, dtype);
        const View out = out_scale != 0 ? Random(sizes(c.m, c.n), dtype) : Poisoned(sizes(c.m, c.n), dtype);
        const Numbers old = Values(out);
        MatMul op = {.left = left, .right = right, .scale = 0.25, .out_scale = out_scale, .out = out};
        if (has_bias) op.bias = bias;
        Run(op);
        const Numbers x = Values(left);
        const Numbers y = Values(right);
        const Numbers z = Values(bias);
        Numbers want;
        for (std::int64_t b = 0; b < std::max<std::int64_t>(c.batch, 1); ++b) {
          const Numbers one = Product(x.data() + b * c.m * c.k, y.data() + b * c.k * c.n, c.m, c.k, c.n);
          for (std::size_t i = 0; i < one.size(); ++i) {
            const double add = has_bias ? z[i % z.size()] : 0;
            want.push_back(0.25 * one[i] + (out_scale != 0 ? out_scale * old[want.size()] : 0) + add);
          }
        }
        Expect(out, want, 8);
      }
    }
  }
}

TEST_F(OpsSuite, MatMulRepeatsABatchOfStrideZero) {
  View left = Random({4, 6}, DType::kFloat32);
  const Numbers x = Values(left);
  left.sizes = {3, 4, 6};
  left.strides = {0, 6, 1};
  const View right = Random({3, 6, 5}, DType::kFloat32);
  const View out = Poisoned({3, 4, 5}, DType::kFloat32);
  Run(MatMul{.left = left, .right = right, .out = out});
  const Numbers y = Values(right);
  Numbers want;
  for (int b = 0; b < 3; ++b) {
    const Numbers one = Product(x.data(), y.data() + b * 30, 4, 6, 5);
    want.insert(want.end(), one.begin(), one.end());
  }
  Expect(out, want, 8);
}

struct Normed {
  Numbers out;
  Numbers mean;
  Numbers rstd;
};

// Layer norm, or RMS norm where `is_rms`; empty weight and bias are 1 and 0.
Normed NormOf(const Numbers& x, std::size_t size, const Numbers& weight, const Numbers& bias, double epsilon,
              bool is_rms) {
  Normed normed;
  for (std::size_t r = 0; r < x.size() / size; ++r) {
    double mean = 0;
    for (std::size_t i = 0; i < size && !is_rms; ++i) mean += x[r * size + i] / static_cast<double>(size);
    double square = 0;
    for (std::size_t i = 0; i < size; ++i) square += (x[r * size + i] - mean) * (x[r * size + i] - mean);
    const double rstd = 1 / std::sqrt(square / static_cast<double>(size) + epsilon);
    normed.mean.push_back(mean);
    normed.rstd.push_back(rstd);
    for (std::size_t i = 0; i < size; ++i) {
      const double y = (x[r * size + i] - mean) * rstd;
      normed.out.push_back(y * (weight.empty() ? 1 : weight[i]) + (bias.empty() ? 0 : bias[i]));
    }
  }
  return normed;
}

TEST_F(OpsSuite, LayerNormAndRmsNorm) {
  for (const std::int64_t size : {1, 7, 64, 768, 1031}) {
    for (const DType dtype : kFloats) {
      for (const bool has_weight : {true, false}) {
        SCOPED_TRACE(testing::Message() << size << " " << std::string(NameOf(dtype)));
        const View in = Random({2, 3, size}, dtype, -1, 3);
        const View weight = Random({size}, DType::kFloat32);
        const View bias = Random({size}, dtype);
        const View out = Poisoned({2, 3, size}, dtype);
        const View mean = Poisoned({6}, DType::kFloat32);
        const View rstd = Poisoned({6}, DType::kFloat32);
        LayerNorm layer = {.in = in, .epsilon = 1e-3, .out = out, .mean = mean, .rstd = rstd};
        if (has_weight) layer.weight = weight;
        if (has_weight) layer.bias = bias;
        Run(layer);
        const Numbers w = has_weight ? Values(weight) : Numbers();
        const Normed want = NormOf(Values(in), At(size), w, has_weight ? Values(bias) : Numbers(), 1e-3, false);
        Expect(out, want.out, 8);
        Expect(mean, want.mean, 8);
        Expect(rstd, want.rstd, 8);
        const View rms_out = Poisoned({2, 3, size}, dtype);
        const View rms_rstd = Poisoned({6}, DType::kFloat32);
        RmsNorm rms = {.in = in, .epsilon = 1e-3, .out = rms_out, .rstd = rms_rstd};
        if (has_weight) rms.weight = weight;
        Run(rms);
        const Normed rms_want = NormOf(Values(in), At(size), w, {}, 1e-3, true);
        Expect(rms_out, rms_want.out, 8);
        Expect(rms_rstd, rms_want.rstd, 8);
      }
    }
  }
}

TEST_F(OpsSuite, NormGradientsByFiniteDifferences) {
  for (const bool is_rms : {false, true}) {
    const std::int64_t rows = 70;  // more than one part of the weight's sums
    const std::int64_t size = 5;
    const View in = Random({rows, size}, DType::kFloat32, -1, 3);
    const View weight = Random({size}, DType::kFloat32);
    const View bias = Random({size}, DType::kFloat32);
    const View grad = Random({rows, size}, DType::kFloat32);
    const View out = Poisoned({rows, size}, DType::kFloat32);
    const View mean = Poisoned({rows}, DType::kFloat32);
    const View rstd = Poisoned({rows}, DType::kFloat32);
    const View grad_in = Poisoned({rows, size}, DType::kFloat32);
    const View grad_weight = Poisoned({size}, DType::kFloat32);
    const View grad_bias = Poisoned({size}, DType::kFloat32);
    if (is_rms) {
      Run(RmsNorm{.in = in, .weight = weight, .epsilon = 1e-2, .out = out, .rstd = rstd});
      Run(RmsNormBackward{
          .grad = grad, .in = in, .weight = weight, .rstd = rstd, .grad_in = grad_in, .grad_weight = grad_weight});
    } else {
      Run(LayerNorm{.in = in, .weight = weight, .bias = bias, .epsilon = 1e-2, .out = out, .mean = mean, .rstd = rstd});
      Run(LayerNormBackward{.grad = grad,
                            .in = in,
                            .weight = weight,
                            .mean = mean,
                            .rstd = rstd,
                            .grad_in = grad_in,
                            .grad_weight = grad_weight,
                            .grad_bias = grad_bias});
    }
    const Numbers x = Values(in);
    const Numbers w = Values(weight);
    const Numbers g = Values(grad);
    const Numbers b = is_rms ? Numbers() : Values(bias);
    const auto loss = [&](const Numbers& xs, const Numbers& ws, const Numbers& bs) {
      return Dot(NormOf(xs, At(size), ws, bs, 1e-2, is_rms).out, g);
    };
    Expect(grad_in, Slopes([&](const Numbers& xs) { return loss(xs, w, b); }, x), 40);
    Expect(grad_weight, Slopes([&](const Numbers& ws) { return loss(x, ws, b); }, w), 40);
    if (!is_rms) Expect(grad_bias, Slopes([&](const Numbers& bs) { return loss(x, w, bs); }, b), 40);
  }
}

TEST_F(OpsSuite, RotaryTurnsAndTurnsBack) {
  for (const bool is_interleaved : {false, true}) {
    const View in = Random({2, 5, 3, 8}, DType::kFloat32, -2, 2, {0, 2, 1, 3});
    const Numbers angles = RandomNumbers(20, -3, 3);
    Numbers cosines;
    Numbers sines;
    for (const double angle : angles) {
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
    const View cos = Make({5, 4}, DType::kFloat32, cosines);
    const View sin = Make({5, 4}, DType::kFloat32, sines);
    const View out = Poisoned({2, 5, 3, 8}, DType::kFloat32);
    Run(Rotary{.in = in, .cos = cos, .sin = sin, .is_interleaved = is_interleaved, .out = out});
    const Numbers x = Values(in);
    Numbers want(x.size());
    for (std::size_t row = 0; row < 30; ++row) {
      for (std::size_t i = 0; i < 4; ++i) {
        const double angle = angles[row / 3 % 5 * 4 + i];
        const std::size_t first = row * 8 + (is_interleaved ? 2 * i : i);
        const std::size_t second = row * 8 + (is_interleaved ? 2 * i + 1 : i + 4);
        want[first] = x[first] * std::cos(angle) - x[second] * std::sin(angle);
        want[second] = x[first] * std::sin(angle) + x[second] * std::cos(angle);
      }
    }
    Expect(out, want);
    Run(Rotary{.in = out, .cos = cos, .sin = sin, .is_interleaved = is_interleaved, .is_inverse = true, .out = out});
    Expect(out, x);
  }
}

// Softmax of each row of `size`; `is_out` says which elements are left out.
Numbers SoftmaxOf(const Numbers& x, std::size_t size, double scale, bool is_log, const std::vector<bool>& is_out) {
  Numbers out(x.size());
  for (std::size_t r = 0; r < x.size() / size; ++r) {
    double sum = 0;
    for (std::size_t i = r * size; i < (r + 1) * size; ++i) sum += is_out[i] ? 0 : std::exp(scale * x[i]);
    for (std::size_t i = r * size; i < (r + 1) * size; ++i) {
      if (is_out[i] || sum == 0) {
        out[i] = is_log ? -std::numeric_limits<double>::infinity() : 0;
      } else {
        out[i] = is_log ? scale * x[i] - std::log(sum) : std::exp(scale * x[i]) / sum;
      }
    }
  }
  return out;
}

TEST_F(OpsSuite, SoftmaxScaledMaskedCausal) {
  for (const std::int64_t size : {1, 6, 33, 1025, 5000}) {
    for (const DType dtype : kFloats) {
      for (const bool is_log : {false, true}) {
        for (int masks = 0; masks < 4; ++masks) {
          SCOPED_TRACE(testing::Message() << size << " " << std::string(NameOf(dtype)) << " masks " << masks);
          const View in = Random({2, 4, size}, dtype, -5, 5);
          const View mask = Whole({2, 1, size}, 0, 2, DType::kBool);
          const View out = Poisoned({2, 4, size}, DType::kFloat32);
          Softmax op = {.in = in, .is_causal = masks >= 2, .is_log = is_log, .scale = 0.5, .out = out};
          if (masks % 2 == 1) op.mask = mask;
          Run(op);
          const Numbers m = Values(mask);
          std::vector<bool> is_out;
          for (std::int64_t i = 0; i < 8 * size; ++i) {
            const std::int64_t key = i % size;
            const std::int64_t query = i / size % 4;
            const bool is_masked = masks % 2 == 1 && m[At(i / size / 4 * size + key)] != 0;
            is_out.push_back(is_masked || (masks >= 2 && key > query + size - 4));
          }
          Expect(out, SoftmaxOf(Values(in), At(size), 0.5, is_log, is_out), 8);
        }
      }
    }
  }
}

TEST_F(OpsSuite, SoftmaxOfLargeScoresAndInPlace) {
  const View x = Make({2, 3}, DType::kFloat32, {3e4, 3e4, -3e4, 88, 89, 90});
  Run(Softmax{.in = x, .out = x});
  Expect(x, SoftmaxOf({0, 0, -6e4, -2, -1, 0}, 3, 1, false, std::vector<bool>(6, false)));
}

TEST_F(OpsSuite, SoftmaxGradientByFiniteDifferences) {
  for (const bool is_log : {false, true}) {
    const View in = Random({6, 9}, DType::kFloat32);
    const View grad = Random({6, 9}, DType::kFloat32);
    const View out = Poisoned({6, 9}, DType::kFloat32);
    const View grad_in = Poisoned({6, 9}, DType::kFloat32);
    Run(Softmax{.in = in, .is_causal = true, .is_log = is_log, .scale = 0.7, .out = out});
    Run(SoftmaxBackward{.grad = grad, .result = out, .is_log = is_log, .scale = 0.7, .out = grad_in});
    const Numbers g = Values(grad);
    std::vector<bool> is_out;
    for (int i = 0; i < 54; ++i) is_out.push_back(i % 9 > i / 9 + 3);
    const auto loss = [&](const Numbers& x) {
      const Numbers y = SoftmaxOf(x, 9, 0.7, is_log, is_out);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += is_out[i] ? 0 : g[i] * y[i];
      return sum;
    };
    Expect(grad_in, Slopes(loss, Values(in)), 40);
  }
}

// Philox by 128-bit arithmetic, written from the paper.
std::vector<std::uint32_t> PaperPhilox(std::uint64_t seed, std::uint64_t counter) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0};
  std::uint32_t k[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const unsigned __int128 a = static_cast<unsigned __int128>(0xD2511F53u) * c[0];
    const unsigned __int128 b = static_cast<unsigned __int128>(0xCD9E8D57u) * c[2];
    const std::uint32_t next[4] = {
        static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b & 0xffffffffu),
        static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a & 0xffffffffu)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return {c, c + 4};
}

TEST_F(OpsSuite, DropoutKeepsWhatPhiloxSays) {
  for (const DType dtype : kFloats) {
    for (const double p : {0.0, 0.1, 0.5, 0.97}) {
      const RandomKey key = {.seed = 0x123456789abcdef0, .offset = (std::uint64_t{1} << 32) - 3};
      const View in = Random({3, 1003}, dtype, 0.5, 2);
      const View out = Poisoned({3, 1003}, dtype);
      const View mask = Poisoned({3, 1003}, DType::kBool);
      Run(Dropout{.in = in, .p = p, .key = key, .out = out, .mask = mask});
      Numbers want = Values(in);
      Numbers kept;
      for (std::size_t i = 0; i < want.size(); ++i) {
        const std::uint32_t word = PaperPhilox(key.seed, key.offset + i / 4)[i % 4];
        kept.push_back(static_cast<double>(word >> 8) * 0x1p-24 >= p);
        want[i] *= kept[i] / (1 - p);
      }
      Expect(mask, kept);
      Expect(out, want, 2);
      double share = 0;
      for (const double is_kept : kept) share += is_kept / static_cast<double>(kept.size());
      EXPECT_NEAR(share, 1 - p, 0.04);
      const View grad = Random({3, 1003}, dtype);
      Numbers slopes = Values(grad);
      for (std::size_t i = 0; i < slopes.size(); ++i) slopes[i] *= kept[i] / (1 - p);
      Run(DropoutBackward{.grad = grad, .mask = mask, .p = p, .out = grad});
      Expect(grad, slopes, 2);
    }
  }
}

}  // namespace
}  // namespace ashlar::ops
