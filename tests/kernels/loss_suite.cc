// Embedding lookup, losses and optimizer steps, in every backend of the suite.
#include <cmath>

#include "tests/kernels/ops_suite.h"

namespace ashlar::ops {
namespace {

TEST_F(OpsSuite, EmbeddingCopiesRows) {
  for (const DType dtype : kFloats) {
    for (const std::int64_t size : {1, 5, 64, 832}) {
      const View weight = Random({37, size}, dtype);
      const View indices = Whole({4, 9}, 0, 37, size % 2 == 0 ? DType::kInt64 : DType::kInt32);
      const View out = Poisoned({4, 9, size}, dtype);
      Run(Embedding{.weight = weight, .indices = indices, .out = out});
      const Numbers w = Values(weight);
      Numbers want;
      for (const double index : Values(indices)) {
        const auto row = w.begin() + static_cast<std::ptrdiff_t>(index) * size;
        want.insert(want.end(), row, row + size);
      }
      Expect(out, want, 0);
    }
  }
}

TEST_F(OpsSuite, EmbeddingBackwardSumsDuplicatesTheSameEachTime) {
  struct Case {
    std::int64_t count, vocabulary, size, padding;
  };
  // Few rows and many duplicates, one index only, many rows, and more than one tile of a sort.
  const Case cases[] = {{500, 7, 33, 3}, {300, 1, 8, -1}, {64, 5000, 5, 0}, {6000, 900, 4, -1}, {0, 10, 4, -1}};
  for (const Case& c : cases) {
    for (const DType dtype : kFloats) {
      for (const bool is_accumulated : {false, true}) {
        SCOPED_TRACE(testing::Message() << c.count << " of " << c.vocabulary << " " << std::string(NameOf(dtype)));
        const View indices = Whole({c.count}, 0, c.vocabulary);
        const View grad = Random({c.count, c.size}, dtype);
        const View out = is_accumulated ? Random({c.vocabulary, c.size}, DType::kFloat32)
                                        : Poisoned({c.vocabulary, c.size}, DType::kFloat32);
        Numbers want = is_accumulated ? Values(out) : Numbers(static_cast<std::size_t>(c.vocabulary * c.size), 0);
        const Numbers g = Values(grad);
        const Numbers at = Values(indices);
        for (std::size_t i = 0; i < at.size(); ++i) {
          if (at[i] == static_cast<double>(c.padding)) continue;
          for (std::int64_t d = 0; d < c.size; ++d) {
            want[static_cast<std::size_t>(at[i]) * static_cast<std::size_t>(c.size) + static_cast<std::size_t>(d)] +=
                g[i * static_cast<std::size_t>(c.size) + static_cast<std::size_t>(d)];
          }
        }
        const EmbeddingBackward op = {.grad = grad,
                                      .indices = indices,
                                      .padding_index = c.padding,
                                      .is_accumulated = is_accumulated,
                                      .grad_weight = out};
        Run(op);
        Expect(out, want, 64);
        if (!is_accumulated) {
          const std::vector<unsigned char> once = Bytes(out);
          Run(op);
          EXPECT_EQ(Bytes(out), once);
        }
      }
    }
  }
}

// Mean over the rows that are not ignored of log-sum-exp minus the target's logit.
double LossOf(const Numbers& logits, const Numbers& targets, std::size_t classes) {
  double sum = 0;
  double total = 0;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] == kIgnoreIndex) continue;
    double exponents = 0;
    for (std::size_t c = 0; c < classes; ++c) exponents += std::exp(logits[r * classes + c]);
    sum += std::log(exponents) - logits[r * classes + static_cast<std::size_t>(targets[r])];
    total += 1;
  }
  return sum / total;
}

TEST_F(OpsSuite, CrossEntropyAndItsGradient) {
  for (const std::int64_t classes : {2, 11, 1024, 5003}) {
    for (const DType dtype : kFloats) {
      SCOPED_TRACE(testing::Message() << classes << " " << std::string(NameOf(dtype)));
      const std::int64_t rows = 6;
      const View logits = Random({rows, classes}, dtype, -4, 4);
      Numbers classes_of = Values(Whole({rows}, 0, classes));
      classes_of[2] = kIgnoreIndex;
      const View targets = Make({rows}, DType::kInt64, classes_of);
      const View row_loss = Poisoned({rows}, DType::kFloat32);
      const View log_sum_exp = Poisoned({rows}, DType::kFloat32);
      const View loss = Poisoned({}, DType::kFloat32);
      const View total = Poisoned({}, DType::kFloat32);
      Run(CrossEntropy{.logits = logits,
                       .targets = targets,
                       .row_loss = row_loss,
                       .log_sum_exp = log_sum_exp,
                       .loss = loss,
                       .total = total});
      const Numbers x = Values(logits);
      const double want = LossOf(x, classes_of, static_cast<std::size_t>(classes));
      Expect(loss, {want}, 8);
      Expect(total, {5}, 0);
      EXPECT_EQ(Values(row_loss)[2], 0);
      const View counted = Poisoned({1}, DType::kFloat32);
      Run(CountTargets{.targets = targets, .total = counted});
      Expect(counted, {5}, 0);
      const View grad_loss = Make({}, DType::kFloat32, {1.7});
      const View grad = Poisoned({rows, classes}, DType::kFloat32);
      Run(CrossEntropyBackward{.grad_loss = grad_loss,
                               .logits = logits,
                               .targets = targets,
                               .log_sum_exp = log_sum_exp,
                               .total = total,
                               .out = grad});
      Numbers slopes;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t r = i / static_cast<std::size_t>(classes);
        const double one = static_cast<double>(i % static_cast<std::size_t>(classes)) == classes_of[r];
        const double softmax = std::exp(x[i] - Values(log_sum_exp)[r]);
        slopes.push_back(r == 2 ? 0 : 1.7 / 5 * (softmax - one));
        if (classes > 1000 && i > 3000) break;
      }
      if (classes <= 11) {
        const auto f = [&](const Numbers& y) { return 1.7 * LossOf(y, classes_of, static_cast<std::size_t>(classes)); };
        Expect(grad, Slopes(f, x), 40);
      }
      const Numbers got = Values(grad);
      for (std::size_t i = 0; i < slopes.size(); ++i) ASSERT_NEAR(got[i], slopes[i], 1e-5) << i;
      // In place of the logits.
      Run(CrossEntropyBackward{.grad_loss = grad_loss,
                               .logits = logits,
                               .targets = targets,
                               .log_sum_exp = log_sum_exp,
                               .total = total,
                               .out = logits});
      Expect(logits, got, 2);
    }
  }
}

TEST_F(OpsSuite, NllLossAndItsGradient) {
  const View logits = Random({300, 7}, DType::kFloat32, -3, 3);
  Numbers classes_of = Values(Whole({300}, 0, 7));
  classes_of[0] = classes_of[299] = kIgnoreIndex;
  const View targets = Make({300}, DType::kInt32, classes_of);
  const View log_probabilities = Poisoned({300, 7}, DType::kFloat32);
  const View loss = Poisoned({}, DType::kFloat32);
  const View total = Poisoned({}, DType::kFloat32);
  Run(Softmax{.in = logits, .is_log = true, .out = log_probabilities});
  Run(NllLoss{.log_probabilities = log_probabilities, .targets = targets, .loss = loss, .total = total});
  Expect(loss, {LossOf(Values(logits), classes_of, 7)}, 16);
  Expect(total, {298}, 0);
  const View grad_loss = Make({}, DType::kFloat32, {-2});
  const View grad = Poisoned({300, 7}, DType::kFloat32);
  Run(NllLossBackward{.grad_loss = grad_loss, .targets = targets, .total = total, .out = grad});
  Numbers want(2100, 0);
  for (std::size_t r = 1; r < 299; ++r) want[r * 7 + static_cast<std::size_t>(classes_of[r])] = 2.0 / 298;
  Expect(grad, want);
}

TEST_F(OpsSuite, LossOfIgnoredTargetsOnlyIsNaN) {
  const View logits = Random({3, 4}, DType::kFloat32);
  const View targets = Make({3}, DType::kInt64, Numbers(3, kIgnoreIndex));
  const View rows = Poisoned({3}, DType::kFloat32);
  const View log_sum_exp = Poisoned({3}, DType::kFloat32);
  const View loss = Poisoned({}, DType::kFloat32);
  const View total = Poisoned({}, DType::kFloat32);
  Run(CrossEntropy{.logits = logits,
                   .targets = targets,
                   .row_loss = rows,
                   .log_sum_exp = log_sum_exp,
                   .loss = loss,
                   .total = total});
  Expect(loss, {std::nan("")});
  Expect(total, {0}, 0);
}

}  // namespace
}  // namespace ashlar::ops
