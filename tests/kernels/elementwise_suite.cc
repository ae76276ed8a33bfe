// Elementwise ops, reductions and indices, in every backend of the suite.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/ops_suite.h"

namespace ashlar::ops {
namespace {

constexpr double kPi = 3.14159265358979323846;

double Reference(UnaryKind kind, double x) {
  switch (kind) {
    case UnaryKind::kNegate:
      return -x;
    case UnaryKind::kAbs:
      return std::abs(x);
    case UnaryKind::kSquare:
      return x * x;
    case UnaryKind::kSqrt:
      return std::sqrt(x);
    case UnaryKind::kRsqrt:
      return 1 / std::sqrt(x);
    case UnaryKind::kReciprocal:
      return 1 / x;
    case UnaryKind::kExp:
      return std::exp(x);
    case UnaryKind::kLog:
      return std::log(x);
    case UnaryKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case UnaryKind::kTanh:
      return std::tanh(x);
    case UnaryKind::kRelu:
      return std::max(x, 0.0);
    case UnaryKind::kSilu:
      return x / (1 + std::exp(-x));
    case UnaryKind::kGelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case UnaryKind::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
  }
  return 0;
}

constexpr int kUnaryKinds = static_cast<int>(UnaryKind::kGeluTanh) + 1;

// Positive where the function or its slope needs that, and away from the corner of relu and abs.
double LowOf(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::kSqrt:
    case UnaryKind::kRsqrt:
    case UnaryKind::kReciprocal:
    case UnaryKind::kLog:
      return 0.5;
    default:
      return -3;
  }
}

TEST_F(OpsSuite, UnaryOfEveryKindAndType) {
  for (int k = 0; k < kUnaryKinds; ++k) {
    const UnaryKind kind = static_cast<UnaryKind>(k);
    SCOPED_TRACE(NameOf(kind));
    for (const DType from : kFloats) {
      for (const DType to : kFloats) {
        const View in = Random({5, 7, 31}, from, LowOf(kind), 3, {2, 0, 1});
        const View out = Poisoned({5, 7, 31}, to);
        Run(Unary{.kind = kind, .in = in, .out = out});
        Numbers want = Values(in);
        for (double& x : want) x = Reference(kind, x);
        Expect(out, want, 8);
      }
    }
  }
}

TEST_F(OpsSuite, UnaryBackwardIsTheSlope) {
  for (int k = 0; k < kUnaryKinds; ++k) {
    const UnaryKind kind = static_cast<UnaryKind>(k);
    SCOPED_TRACE(NameOf(kind));
    const View in = Random({3, 37}, DType::kFloat32, LowOf(kind), 3);
    const View grad = Random({3, 37}, DType::kFloat32);
    View saved = in;
    if (SavesResult(kind)) {
      saved = Poisoned({3, 37}, DType::kFloat32);
      Run(Unary{.kind = kind, .in = in, .out = saved});
    }
    const View out = Poisoned({3, 37}, DType::kFloat32);
    Run(UnaryBackward{.kind = kind, .grad = grad, .saved = saved, .out = out});
    const Numbers x = Values(in);
    Numbers want = Values(grad);
    for (std::size_t i = 0; i < want.size(); ++i) {
      want[i] *= (Reference(kind, x[i] + 1e-6) - Reference(kind, x[i] - 1e-6)) / 2e-6;
    }
    Expect(out, want, 32);
  }
}

TEST_F(OpsSuite, BinaryBroadcastsAndMixesTypes) {
  for (int k = 0; k <= static_cast<int>(BinaryKind::kMinimum); ++k) {
    const BinaryKind kind = static_cast<BinaryKind>(k);
    SCOPED_TRACE(NameOf(kind));
    for (const DType left_type : kFloats) {
      for (const DType right_type : kFloats) {
        const View left = Random({4, 1, 33}, left_type);
        const View right = Random({5, 1}, right_type, 0.5, 2);
        const View out = Poisoned({4, 5, 33}, DType::kFloat32, {1, 0, 2});
        const double scale = kind == BinaryKind::kAdd || kind == BinaryKind::kSubtract ? -0.75 : 1;
        Run(Binary{.kind = kind, .left = left, .right = right, .scale = scale, .out = out});
        const Numbers x = Values(left);
        const Numbers y = Values(right);
        Numbers want;
        for (std::size_t a = 0; a < 4; ++a) {
          for (std::size_t b = 0; b < 5; ++b) {
            for (std::size_t c = 0; c < 33; ++c) {
              const double l = x[a * 33 + c];
              const double r = y[b];
              const double all[] = {l + scale * r, l - scale * r, l * r, l / r, std::max(l, r), std::min(l, r)};
              want.push_back(all[k]);
            }
          }
        }
        Expect(out, want, 2);
      }
    }
  }
}

TEST_F(OpsSuite, ElementwiseInPlaceAndOfNothing) {
  const View x = Random({129}, DType::kFloat16);
  Numbers want = Values(x);
  for (double& value : want) value = value * 3 + 1;
  Run(Affine{.in = x, .scale = 3, .shift = 1, .out = x});
  Expect(x, want, 1);
  const View none = Poisoned({3, 0, 2}, DType::kFloat32);
  Run(Affine{.in = none, .scale = 3, .shift = 1, .out = none});
  const View one = Make({}, DType::kFloat32, {2});
  Run(Binary{.kind = BinaryKind::kMultiply, .left = one, .right = one, .out = one});
  Expect(one, {4});
}

TEST_F(OpsSuite, AddProductAndQuotient) {
  for (const bool is_quotient : {false, true}) {
    const View base = Random({3, 50}, DType::kFloat32);
    const View left = Random({3, 50}, DType::kFloat16);
    const View right = Random({50}, DType::kBFloat16, 0.5, 2);
    const View out = Poisoned({3, 50}, DType::kFloat32);
    Run(AddProduct{.base = base, .left = left, .right = right, .value = -0.3, .is_quotient = is_quotient, .out = out});
    Numbers want = Values(base);
    const Numbers l = Values(left);
    const Numbers r = Values(right);
    for (std::size_t i = 0; i < want.size(); ++i) {
      want[i] += -0.3 * (is_quotient ? l[i] / r[i % 50] : l[i] * r[i % 50]);
    }
    Expect(out, want);
  }
}

TEST_F(OpsSuite, CopyCastsEveryPairOfTypes) {
  constexpr DType kAll[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt64,
                            DType::kInt32,   DType::kUint8,   DType::kBool};
  for (const DType from : kAll) {
    for (const DType to : kAll) {
      SCOPED_TRACE(std::string(NameOf(from)) + " to " + std::string(NameOf(to)));
      Numbers values =
          IsFloat(from) ? RandomNumbers(6 * 11, 0, 100) : RandomNumbers(6 * 11, 0, from == DType::kBool ? 2 : 99);
      values[5] = 0;
      const View in = Make({1, 11, 6}, from, values, {2, 1, 0});
      const View out = Poisoned({2, 11, 6}, to);
      Run(Copy{.in = in, .out = out});
      Numbers want = Values(in);
      for (double& value : want) {
        if (to == DType::kBool) value = value != 0;
        if (!IsFloat(to)) value = std::trunc(value);
      }
      const Numbers once = want;
      want.insert(want.end(), once.begin(), once.end());
      Expect(out, want, from == to ? 0 : 1);
    }
  }
}

TEST_F(OpsSuite, CopyKeepsBitsAndSaturates) {
  const double big = 9007199254740991;  // 2^53 - 1
  const View wide = Make({3}, DType::kInt64, {big, -big, 7});
  const View same = Poisoned({3}, DType::kInt64);
  Run(Copy{.in = wide, .out = same});
  Expect(same, {big, -big, 7});
  const View narrow = Poisoned({3}, DType::kInt32);
  Run(Copy{.in = wide, .out = narrow});
  Expect(narrow, {2147483647.0, -2147483648.0, 7});
  const View floats = Make({4}, DType::kFloat32, {1e30, -1e30, std::nan(""), -2.75});
  const View whole = Poisoned({4}, DType::kInt32);
  Run(Copy{.in = floats, .out = whole});
  Expect(whole, {2147483647.0, -2147483648.0, 0, -2});
  const View half = Poisoned({4}, DType::kFloat16);
  Run(Copy{.in = floats, .out = half});
  const double inf = std::numeric_limits<double>::infinity();
  Expect(half, {inf, -inf, std::nan(""), -2.75});
}

TEST_F(OpsSuite, FillAndArange) {
  const View half = Poisoned({7, 9}, DType::kBFloat16, {1, 0});
  Run(Fill{.out = half, .value = 1.5});
  Expect(half, Numbers(63, 1.5), 0);
  const View ids = Poisoned({1000}, DType::kInt64);
  Run(Arange{.out = ids, .start = 5, .step = 2});
  Numbers want(1000);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = 5 + 2.0 * static_cast<double>(i);
  Expect(ids, want);
}

TEST_F(OpsSuite, CompareWhereAndMaskedFill) {
  for (int k = 0; k <= static_cast<int>(CompareKind::kGreaterEqual); ++k) {
    for (const DType dtype : {DType::kInt64, DType::kFloat16}) {
      const View left = Whole({6, 20}, -3, 4, dtype);
      const View right = Whole({20}, -3, 4, dtype);
      const View mask = Poisoned({6, 20}, DType::kBool);
      Run(Compare{.kind = static_cast<CompareKind>(k), .left = left, .right = right, .out = mask});
      const Numbers x = Values(left);
      const Numbers y = Values(right);
      Numbers want;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double a = x[i];
        const double b = y[i % 20];
        const bool all[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
        want.push_back(all[k]);
      }
      Expect(mask, want);
      const View no = Make({}, dtype, {-7});
      const View chosen = Poisoned({6, 20}, dtype);
      Run(Where{.mask = mask, .yes = left, .no = no, .out = chosen});
      const View filled = Poisoned({6, 20}, dtype);
      Run(MaskedFill{.in = left, .mask = mask, .value = 9, .out = filled});
      Numbers chosen_want = x;
      Numbers filled_want = x;
      for (std::size_t i = 0; i < x.size(); ++i)
        (want[i] != 0 ? filled_want[i] : chosen_want[i]) = want[i] != 0 ? 9 : -7;
      Expect(chosen, chosen_want, 0);
      Expect(filled, filled_want, 0);
    }
  }
}

double ReduceOf(ReduceKind kind, const Numbers& values) {
  if (kind == ReduceKind::kMaximum) return *std::max_element(values.begin(), values.end());
  if (kind == ReduceKind::kMinimum) return *std::min_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  return kind == ReduceKind::kSum ? sum : sum / static_cast<double>(values.size());
}

TEST_F(OpsSuite, ReduceOverAnyDims) {
  struct Case {
    Dims in;
    Dims out;
    Dims order;
  };
  const Case cases[] = {
      {{3, 5, 41}, {3, 5, 1}, {}}, {{3, 5, 41}, {1, 5, 41}, {}},
      {{3, 5, 41}, {41}, {}},      {{3, 5, 41}, {5, 1}, {}},
      {{3, 5, 41}, {}, {}},        {{2100, 3}, {3}, {}},
      {{3, 2100}, {3, 1}, {1, 0}}, {{7, 301, 4}, {1, 301, 1}, {2, 1, 0}},
      {{5000}, {1}, {}},           {{4, 6}, {4, 6}, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(ToString(c.in) + " to " + ToString(c.out));
    for (int k = 0; k <= static_cast<int>(ReduceKind::kMinimum); ++k) {
      const ReduceKind kind = static_cast<ReduceKind>(k);
      const View in = Random(c.in, k % 2 == 0 ? DType::kFloat32 : DType::kBFloat16, -1, 1, c.order);
      const View out = Poisoned(c.out, DType::kFloat32);
      Run(Reduce{.kind = kind, .in = in, .out = out});
      // The output element that each input element goes to, by broadcasting the outputs' numbers.
      const View numbers = {.sizes = c.out, .strides = ContiguousStrides(c.out)};
      const View seen = *BroadcastTo(numbers, c.in);
      std::vector<Numbers> groups(static_cast<std::size_t>(ElementCount(c.out)));
      const Numbers values = Values(in);
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::int64_t rest = static_cast<std::int64_t>(i);
        std::int64_t at = 0;
        for (std::size_t d = c.in.size(); d-- > 0;) {
          at += rest % c.in[d] * seen.strides[d];
          rest /= c.in[d];
        }
        groups[static_cast<std::size_t>(at)].push_back(values[i]);
      }
      Numbers want;
      for (const Numbers& group : groups) want.push_back(ReduceOf(kind, group));
      Expect(out, want, 40);
    }
  }
}

TEST_F(OpsSuite, ReduceOfNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  const Numbers wants = {0, std::nan(""), -inf, inf};
  for (int k = 0; k <= static_cast<int>(ReduceKind::kMinimum); ++k) {
    const View in = Poisoned({3, 0}, DType::kFloat32);
    const View out = Poisoned({3, 1}, DType::kFloat32);
    Run(Reduce{.kind = static_cast<ReduceKind>(k), .in = in, .out = out});
    Expect(out, Numbers(3, wants[static_cast<std::size_t>(k)]));
  }
}

TEST_F(OpsSuite, MaxAlongFindsTheFirstOfTheLargest) {
  const View in = Whole({4, 9, 5}, -4, 4, DType::kFloat32);
  for (int dim = 0; dim < 3; ++dim) {
    Dims sizes = in.sizes;
    sizes[static_cast<std::size_t>(dim)] = 1;
    const View values = Poisoned(sizes, DType::kFloat32);
    const View indices = Poisoned(sizes, DType::kInt64);
    Run(MaxAlong{.in = in, .dim = dim, .values = values, .indices = indices});
    const Numbers x = Values(in);
    Numbers most;
    Numbers where;
    for (std::int64_t a = 0; a < sizes[0]; ++a) {
      for (std::int64_t b = 0; b < sizes[1]; ++b) {
        for (std::int64_t c = 0; c < sizes[2]; ++c) {
          double best = -100;
          double at = 0;
          for (std::int64_t i = 0; i < in.sizes[static_cast<std::size_t>(dim)]; ++i) {
            const std::int64_t k = ((dim == 0 ? i : a) * 9 + (dim == 1 ? i : b)) * 5 + (dim == 2 ? i : c);
            if (x[static_cast<std::size_t>(k)] > best) {
              best = x[static_cast<std::size_t>(k)];
              at = static_cast<double>(i);
            }
          }
          most.push_back(best);
          where.push_back(at);
        }
      }
    }
    Expect(values, most, 0);
    Expect(indices, where);
  }
}

TEST_F(OpsSuite, GatherAndScatterAddAlongADim) {
  for (const DType index_type : {DType::kInt64, DType::kInt32}) {
    const View in = Random({6, 10}, DType::kFloat32);
    const View index = Whole({6, 4}, 0, 10, index_type);
    const View out = Poisoned({6, 4}, DType::kFloat32);
    Run(Gather{.in = in, .dim = 1, .index = index, .out = out});
    const Numbers x = Values(in);
    const Numbers at = Values(index);
    Numbers want;
    Numbers sums(60, 0.5);
    const View sum = Make({6, 10}, DType::kFloat32, sums);
    for (std::size_t i = 0; i < 24; ++i) {
      want.push_back(x[i / 4 * 10 + static_cast<std::size_t>(at[i])]);
      sums[i / 4 * 10 + static_cast<std::size_t>(at[i])] += want.back();
    }
    Expect(out, want, 0);
    Run(ScatterAdd{.in = out, .dim = 1, .index = index, .out = sum});
    Expect(sum, sums);
    const View rows = Whole({2, 10}, 0, 6, index_type);
    const View picked = Poisoned({2, 10}, DType::kFloat32);
    Run(Gather{.in = in, .dim = 0, .index = rows, .out = picked});
    const Numbers row = Values(rows);
    want.clear();
    for (std::size_t i = 0; i < 20; ++i) want.push_back(x[static_cast<std::size_t>(row[i]) * 10 + i % 10]);
    Expect(picked, want, 0);
  }
}

}  // namespace
}  // namespace ashlar::ops
