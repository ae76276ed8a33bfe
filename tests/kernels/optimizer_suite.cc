// Optimizer steps against float64 models, in every backend of the suite.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/ops_suite.h"

namespace ashlar::ops {
namespace {

// Lists longer than a launch holds, with tensors of one element and of more than one piece.
const std::vector<std::int64_t> kSizes = [] {
  std::vector<std::int64_t> sizes = {1, 5, 1000, 70001};
  for (std::int64_t i = 0; i < 60; ++i) sizes.push_back(3 + i % 7);
  return sizes;
}();

class OptimizerSuite : public OpsSuite {
 protected:
  View Zeros(std::int64_t size, DType dtype = DType::kFloat32) {
    return Make({size}, dtype, Numbers(static_cast<std::size_t>(size), 0));
  }
};

struct Adam {
  double lr = 0.01, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-6, decay = 0.1;
  void Step(double& p, double g, double& m, double& v, int step) const {
    p *= 1 - lr * decay;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    p -= lr * (m / (1 - std::pow(beta1, step))) / (std::sqrt(v / (1 - std::pow(beta2, step))) + epsilon);
  }
};

TEST_F(OptimizerSuite, AdamWOneByOneAndAsAList) {
  for (const DType dtype : kFloats) {
    for (const bool is_list : {false, true}) {
      const Adam model;
      std::vector<AdamWTensor> tensors;
      std::vector<Numbers> p;
      for (const std::int64_t size : kSizes) {
        tensors.push_back({.parameter = Random({size}, dtype),
                           .gradient = Random({size}, DType::kFloat32),
                           .first = Zeros(size),
                           .second = Zeros(size)});
        p.push_back(Values(tensors.back().parameter));
      }
      std::vector<Numbers> m(p.size());
      std::vector<Numbers> v(p.size());
      AdamWStep op = {.tensors = tensors,
                      .learning_rate = model.lr,
                      .beta1 = model.beta1,
                      .beta2 = model.beta2,
                      .epsilon = model.epsilon,
                      .weight_decay = model.decay};
      for (op.step = 1; op.step <= 3; ++op.step) {
        for (std::size_t t = 0; t < tensors.size(); ++t) {
          if (!is_list) {
            op.tensors = absl::MakeConstSpan(&tensors[t], 1);
            Run(op);
          }
          const Numbers g = Values(tensors[t].gradient);
          m[t].resize(g.size());
          v[t].resize(g.size());
          for (std::size_t i = 0; i < g.size(); ++i) {
            model.Step(p[t][i], g[i], m[t][i], v[t][i], static_cast<int>(op.step));
          }
        }
        if (is_list) Run(op);
        // A half parameter is rounded at each step, and the model starts from there.
        for (std::size_t t = 0; t < tensors.size(); ++t) {
          Expect(tensors[t].parameter, p[t], 8);
          p[t] = Values(tensors[t].parameter);
        }
      }
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        Expect(tensors[t].first, m[t], 8);
        Expect(tensors[t].second, v[t], 8);
      }
    }
  }
}

TEST_F(OptimizerSuite, FusedAdamWReadsScaleStepAndOverflowOnTheDevice) {
  const Adam model;
  const AdamWTensor tensor = {.parameter = Random({300}, DType::kFloat32),
                              .gradient = Random({300}, DType::kFloat16),
                              .first = Zeros(300),
                              .second = Zeros(300)};
  const View found = Make({}, DType::kFloat32, {1});
  AdamWStep op = {.tensors = absl::MakeConstSpan(&tensor, 1),
                  .learning_rate = model.lr,
                  .beta1 = model.beta1,
                  .beta2 = model.beta2,
                  .epsilon = model.epsilon,
                  .weight_decay = model.decay,
                  .step = 77,
                  .on_device = {.inverse_scale = Make({}, DType::kFloat32, {0.125}),
                                .found_infinite = found,
                                .step = Make({}, DType::kFloat32, {5})}};
  Numbers p = Values(tensor.parameter);
  Run(op);
  Expect(tensor.parameter, p, 0);
  Expect(tensor.first, Numbers(300, 0), 0);
  Run(Fill{.out = found, .value = 0});
  Run(op);
  const Numbers g = Values(tensor.gradient);
  for (std::size_t i = 0; i < p.size(); ++i) {
    double m = 0;
    double v = 0;
    model.Step(p[i], g[i] * 0.125, m, v, 5);
  }
  Expect(tensor.parameter, p, 8);
}

TEST_F(OptimizerSuite, SgdPlainMomentumNesterov) {
  for (int kind = 0; kind < 3; ++kind) {
    const double momentum = kind == 0 ? 0 : 0.9;
    std::vector<SgdTensor> tensors;
    std::vector<Numbers> p;
    std::vector<Numbers> m;
    for (const std::int64_t size : {7, 70001, 1}) {
      SgdTensor tensor = {.parameter = Random({size}, DType::kFloat32), .gradient = Random({size}, DType::kBFloat16)};
      if (kind > 0) tensor.momentum = Poisoned({size}, DType::kFloat32);
      tensors.push_back(tensor);
      p.push_back(Values(tensor.parameter));
      m.emplace_back(p.back().size(), 0);
    }
    for (int step = 1; step <= 3; ++step) {
      Run(SgdStep{.tensors = tensors,
                  .learning_rate = 0.1,
                  .momentum = momentum,
                  .weight_decay = 0.01,
                  .is_nesterov = kind == 2,
                  .is_first = step == 1});
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        const Numbers g = Values(tensors[t].gradient);
        for (std::size_t i = 0; i < g.size(); ++i) {
          const double slope = g[i] + 0.01 * p[t][i];
          m[t][i] = step == 1 ? slope : momentum * m[t][i] + slope;
          p[t][i] -= 0.1 * (kind == 0 ? slope : kind == 1 ? m[t][i] : slope + momentum * m[t][i]);
        }
        Expect(tensors[t].parameter, p[t], 8);
      }
    }
  }
}

TEST_F(OptimizerSuite, AdafactorFactoredAndWhole) {
  struct Case {
    Dims sizes;
    bool is_factored;
  };
  for (const Case& c : {Case{{150, 33}, true}, Case{{1, 40}, true}, Case{{300}, false}, Case{{2, 3, 5}, false}}) {
    for (const bool is_scaled : {false, true}) {
      SCOPED_TRACE(ToString(c.sizes));
      AdafactorStep op = {.parameter = Random(c.sizes, DType::kFloat32),
                          .gradient = Random(c.sizes, DType::kFloat32),
                          .learning_rate = 0.02,
                          .clip_threshold = 0.8,
                          .weight_decay = 0.1,
                          .is_scaled = is_scaled};
      const std::int64_t count = ElementCount(c.sizes);
      const std::int64_t columns = c.is_factored ? c.sizes[1] : count;
      if (c.is_factored) {
        op.row = Zeros(c.sizes[0]);
        op.column = Zeros(columns);
      } else {
        op.second = Zeros(count);
      }
      Numbers p = Values(op.parameter);
      const Numbers g = Values(op.gradient);
      const std::size_t width = static_cast<std::size_t>(columns);
      const std::size_t rows = g.size() / width;
      Numbers row(rows, 0);
      Numbers column(width, 0);
      Numbers second(g.size(), 0);
      for (int step = 1; step <= 3; ++step) {
        op.beta2 = 1 - std::pow(step, -0.8);
        Run(op);
        Numbers row_sums(rows, 0);
        Numbers column_sums(width, 0);
        for (std::size_t i = 0; i < g.size(); ++i) {
          const double square = g[i] * g[i] + op.epsilon1;
          row_sums[i / width] += square / static_cast<double>(width);
          column_sums[i % width] += square / static_cast<double>(rows);
          second[i] = op.beta2 * second[i] + (1 - op.beta2) * square;
        }
        double mean = 0;
        for (std::size_t r = 0; r < rows; ++r) {
          row[r] = op.beta2 * row[r] + (1 - op.beta2) * row_sums[r];
          mean += row[r] / static_cast<double>(rows);
        }
        for (std::size_t i = 0; i < width; ++i) {
          column[i] = op.beta2 * column[i] + (1 - op.beta2) * column_sums[i];
        }
        Numbers update(g.size());
        double squares = 0;
        double weights = 0;
        for (std::size_t i = 0; i < g.size(); ++i) {
          update[i] = g[i] / std::sqrt(c.is_factored ? row[i / width] * column[i % width] / mean : second[i]);
          squares += update[i] * update[i] / static_cast<double>(g.size());
          weights += p[i] * p[i] / static_cast<double>(g.size());
        }
        const double clip = std::max(1.0, std::sqrt(squares) / 0.8);
        const double rate = is_scaled ? 0.02 * std::max(1e-3, std::sqrt(weights)) : 0.02;
        for (std::size_t i = 0; i < g.size(); ++i) p[i] = p[i] * (1 - 0.1 * rate) - rate * update[i] / clip;
        Expect(op.parameter, p, 16);
      }
      if (c.is_factored) Expect(*op.row, row, 16);
      if (c.is_factored) Expect(*op.column, column, 16);
    }
  }
}

// The map from its definition, and the nearest code by trying all.
Numbers MapOf(bool is_signed) {
  Numbers map = {0, 1};
  for (int i = 0; i < 7; ++i) {
    const int steps = is_signed ? 1 << i : 2 << i;
    for (int k = 0; k < steps; ++k) {
      const double middle = (0.1 + 0.9 * k / steps + 0.1 + 0.9 * (k + 1) / steps) / 2 * std::pow(10, i - 6);
      map.push_back(middle);
      if (is_signed) map.push_back(-middle);
    }
  }
  std::sort(map.begin(), map.end());
  return map;
}

// The code is the nearest of all, or one that float arithmetic cannot tell from it.
void ExpectNearest(const Numbers& map, double value, double code, const char* what) {
  double nearest = 10;
  for (const double entry : map) nearest = std::min(nearest, std::abs(entry - value));
  EXPECT_NEAR(std::abs(map[static_cast<std::size_t>(code)] - value), nearest, 1e-6) << what << " " << value;
}

TEST_F(OptimizerSuite, AdamW8BitIsAdamWOnDecodedStates) {
  const Numbers signed_map = MapOf(true);
  const Numbers unsigned_map = MapOf(false);
  ASSERT_EQ(signed_map.size(), 256u);
  ASSERT_EQ(unsigned_map.size(), 256u);
  const Adam model;
  const std::int64_t size = 2 * kBlock8Bit + 77;
  const auto codes = [&](double code) {
    return Make({size}, DType::kUint8, Numbers(static_cast<std::size_t>(size), code));
  };
  const AdamW8BitTensor tensor = {.parameter = Random({size}, DType::kFloat32),
                                  .gradient = Random({size}, DType::kFloat32),
                                  .first = codes(127),
                                  .first_scale = Zeros(3),
                                  .second = codes(0),
                                  .second_scale = Zeros(3)};
  AdamW8BitStep op = {.tensors = absl::MakeConstSpan(&tensor, 1),
                      .learning_rate = model.lr,
                      .beta1 = model.beta1,
                      .beta2 = model.beta2,
                      .epsilon = model.epsilon,
                      .weight_decay = model.decay};
  for (op.step = 1; op.step <= 4; ++op.step) {
    Numbers p = Values(tensor.parameter);
    const Numbers g = Values(tensor.gradient);
    Numbers m = Values(tensor.first);
    Numbers v = Values(tensor.second);
    const Numbers old_first = Values(tensor.first_scale);
    const Numbers old_second = Values(tensor.second_scale);
    Run(op);
    Numbers first_most(3, 0);
    Numbers second_most(3, 0);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const std::size_t block = i / static_cast<std::size_t>(kBlock8Bit);
      m[i] = signed_map[static_cast<std::size_t>(m[i])] * old_first[block];
      v[i] = unsigned_map[static_cast<std::size_t>(v[i])] * old_second[block];
      model.Step(p[i], g[i], m[i], v[i], static_cast<int>(op.step));
      first_most[block] = std::max(first_most[block], std::abs(m[i]));
      second_most[block] = std::max(second_most[block], v[i]);
    }
    Expect(tensor.parameter, p, 16);
    Expect(tensor.first_scale, first_most, 4);
    Expect(tensor.second_scale, second_most, 4);
    const Numbers first = Values(tensor.first);
    const Numbers second = Values(tensor.second);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const std::size_t block = i / static_cast<std::size_t>(kBlock8Bit);
      ExpectNearest(signed_map, m[i] / first_most[block], first[i], "first");
      ExpectNearest(unsigned_map, v[i] / second_most[block], second[i], "second");
    }
  }
}

TEST_F(OptimizerSuite, ClipNormScalesAllByTheirCommonNorm) {
  for (const double most : {1.0, 1e6}) {
    std::vector<View> gradients;
    std::vector<Numbers> want;
    double square = 0;
    for (std::size_t t = 0; t < kSizes.size(); ++t) {
      gradients.push_back(Random({kSizes[t]}, kFloats[t % 3]));
      want.push_back(Values(gradients.back()));
      square += Dot(want.back(), want.back());
    }
    const View norm = Poisoned({}, DType::kFloat32);
    Run(ClipNorm{.gradients = gradients, .most = most, .norm = norm});
    Expect(norm, {std::sqrt(square)}, 16);
    const double scale = std::min(1.0, most / std::sqrt(square));
    for (std::size_t t = 0; t < want.size(); ++t) {
      for (double& g : want[t]) g *= scale;
      Expect(gradients[t], want[t], scale == 1 ? 0 : 8);
    }
  }
}

TEST_F(OptimizerSuite, UnscaleFindsWhatIsNotFinite) {
  for (const double odd : {0.5, std::numeric_limits<double>::infinity(), std::nan("")}) {
    std::vector<View> gradients = {Random({70001}, DType::kFloat16), Random({3}, DType::kFloat32)};
    Numbers values = Values(gradients[1]);
    values[2] = odd;
    gradients[1] = Make({3}, DType::kFloat32, values);
    const Numbers half = Values(gradients[0]);
    const View found = Make({}, DType::kFloat32, {0});
    Run(Unscale{.gradients = gradients, .inverse_scale = Make({}, DType::kFloat32, {0.25}), .found_infinite = found});
    Expect(found, {std::isfinite(odd) ? 0.0 : 1.0}, 0);
    Numbers want = half;
    for (double& g : want) g *= 0.25;
    Expect(gradients[0], want, 1);
    for (double& g : values) g *= 0.25;
    Expect(gradients[1], values, 0);
  }
}

}  // namespace
}  // namespace ashlar::ops
