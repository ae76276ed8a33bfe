// Layer norm, RMS norm and rotary positions on the host.
#include <cmath>

#include "kernels/ops/host/host_ops.h"

namespace ashlar::ops {
namespace {

using host::ForPieces;
using host::kPiece;
using host::Load;
using host::Place;
using host::Row;
using host::RowAt;
using host::Store;

struct Shape {
  std::int64_t rows;
  std::int64_t size;  // elements of a row
};

Shape ShapeOf(const View& view) {
  const std::int64_t size = view.sizes.back();
  return {size == 0 ? 0 : ElementCount(view.sizes) / size, size};
}

// The row's floats of an optional vector; nothing there is `otherwise`.
const float* LoadOr(const std::optional<View>& vector, std::int64_t begin, std::int64_t count, float otherwise,
                    float* buffer) {
  if (vector) return Load(RowAt(*vector, 0), begin, count, buffer);
  std::fill(buffer, buffer + count, otherwise);
  return buffer;
}

// Sum of term(x) over a row.
template <typename Term>
double Sum(const Row& row, std::int64_t size, const Term& term) {
  double sum = 0;
  float buffer[kPiece];
  ForPieces(size, [&](std::int64_t begin, std::int64_t count) {
    const float* x = Load(row, begin, count, buffer);
    for (std::int64_t i = 0; i < count; ++i) sum += term(static_cast<double>(x[i]));
  });
  return sum;
}

// out = (in - mean) * rstd * weight + bias.
void Normalise(const Row& in, std::int64_t size, float mean, float rstd, const std::optional<View>& weight,
               const std::optional<View>& bias, const Row& out) {
  float buffers[4][kPiece];
  ForPieces(size, [&](std::int64_t begin, std::int64_t count) {
    const float* x = Load(in, begin, count, buffers[0]);
    const float* w = LoadOr(weight, begin, count, 1, buffers[1]);
    const float* b = LoadOr(bias, begin, count, 0, buffers[2]);
    float* y = Place(out, begin, buffers[3]);
    for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * rstd * w[i] + b[i];
    Store(out, begin, count, y);
  });
}

// What both norms' backward passes share; an RMS norm has mean 0 and no mean term.
struct NormBackward {
  Row grad;
  Row in;
  float mean;
  float rstd;
  const std::optional<View>& weight;
  std::int64_t size;
  bool is_centred;

  // dx = rstd * (g w - mean(g w) - xhat mean(g w xhat))
  void GradIn(const Row& out) const {
    float buffers[4][kPiece];
    double sum = 0;
    double dot = 0;
    ForPieces(size, [&](std::int64_t begin, std::int64_t count) {
      const float* g = Load(grad, begin, count, buffers[0]);
      const float* x = Load(in, begin, count, buffers[1]);
      const float* w = LoadOr(weight, begin, count, 1, buffers[2]);
      for (std::int64_t i = 0; i < count; ++i) {
        const double gw = static_cast<double>(g[i] * w[i]);
        sum += gw;
        dot += gw * static_cast<double>((x[i] - mean) * rstd);
      }
    });
    const float mean_sum = is_centred ? static_cast<float>(sum / static_cast<double>(size)) : 0;
    const float mean_dot = static_cast<float>(dot / static_cast<double>(size));
    ForPieces(size, [&](std::int64_t begin, std::int64_t count) {
      const float* g = Load(grad, begin, count, buffers[0]);
      const float* x = Load(in, begin, count, buffers[1]);
      const float* w = LoadOr(weight, begin, count, 1, buffers[2]);
      float* y = Place(out, begin, buffers[3]);
      for (std::int64_t i = 0; i < count; ++i) {
        y[i] = rstd * (g[i] * w[i] - mean_sum - (x[i] - mean) * rstd * mean_dot);
      }
      Store(out, begin, count, y);
    });
  }

  // weights += g xhat, biases += g
  void AddParameters(double* weights, double* biases) const {
    float buffers[2][kPiece];
    ForPieces(size, [&](std::int64_t begin, std::int64_t count) {
      const float* g = Load(grad, begin, count, buffers[0]);
      const float* x = Load(in, begin, count, buffers[1]);
      for (std::int64_t i = 0; i < count; ++i) {
        weights[begin + i] += static_cast<double>(g[i] * ((x[i] - mean) * rstd));
        biases[begin + i] += static_cast<double>(g[i]);
      }
    });
  }
};

void StoreSums(const std::optional<View>& out, const double* sums) {
  if (!out) return;
  for (std::int64_t i = 0; i < out->sizes[0]; ++i) host::StoreNumber(RowAt(*out, 0), i, sums[i]);
}

}  // namespace

absl::Status HostOps::Do(const LayerNorm& op) {
  const auto [rows, size] = ShapeOf(op.in);
  for (std::int64_t r = 0; r < rows; ++r) {
    const Row in = RowAt(op.in, r * size);
    const double mean = Sum(in, size, [](double x) { return x; }) / static_cast<double>(size);
    const double variance =
        Sum(in, size, [&](double x) { return (x - mean) * (x - mean); }) / static_cast<double>(size);
    const float rstd = static_cast<float>(1 / std::sqrt(variance + op.epsilon));
    static_cast<float*>(op.mean.data)[r] = static_cast<float>(mean);
    static_cast<float*>(op.rstd.data)[r] = rstd;
    Normalise(in, size, static_cast<float>(mean), rstd, op.weight, op.bias, RowAt(op.out, r * size));
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const RmsNorm& op) {
  const auto [rows, size] = ShapeOf(op.in);
  for (std::int64_t r = 0; r < rows; ++r) {
    const Row in = RowAt(op.in, r * size);
    const double square = Sum(in, size, [](double x) { return x * x; }) / static_cast<double>(size);
    const float rstd = static_cast<float>(1 / std::sqrt(square + op.epsilon));
    static_cast<float*>(op.rstd.data)[r] = rstd;
    Normalise(in, size, 0, rstd, op.weight, std::nullopt, RowAt(op.out, r * size));
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const LayerNormBackward& op) {
  const auto [rows, size] = ShapeOf(op.in);
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), 2 * static_cast<std::uint64_t>(size) * sizeof(double));
  if (!scratch.ok()) return scratch.status();
  double* weights = static_cast<double*>(scratch->data());
  std::fill(weights, weights + 2 * size, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const NormBackward row = {RowAt(op.grad, r * size),
                              RowAt(op.in, r * size),
                              static_cast<const float*>(op.mean.data)[r],
                              static_cast<const float*>(op.rstd.data)[r],
                              op.weight,
                              size,
                              true};
    if (op.grad_weight || op.grad_bias) row.AddParameters(weights, weights + size);
    if (op.grad_in) row.GradIn(RowAt(*op.grad_in, r * size));
  }
  StoreSums(op.grad_weight, weights);
  StoreSums(op.grad_bias, weights + size);
  return absl::OkStatus();
}

absl::Status HostOps::Do(const RmsNormBackward& op) {
  const auto [rows, size] = ShapeOf(op.in);
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), 2 * static_cast<std::uint64_t>(size) * sizeof(double));
  if (!scratch.ok()) return scratch.status();
  double* weights = static_cast<double*>(scratch->data());
  std::fill(weights, weights + 2 * size, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const NormBackward row = {RowAt(op.grad, r * size),
                              RowAt(op.in, r * size),
                              0,
                              static_cast<const float*>(op.rstd.data)[r],
                              op.weight,
                              size,
                              false};
    if (op.grad_weight) row.AddParameters(weights, weights + size);
    if (op.grad_in) row.GradIn(RowAt(*op.grad_in, r * size));
  }
  StoreSums(op.grad_weight, weights);
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Rotary& op) {
  const std::int64_t half = op.in.sizes[3] / 2;
  const float* cos = static_cast<const float*>(op.cos.data);
  const float* sin = static_cast<const float*>(op.sin.data);
  const float sign = op.is_inverse ? -1 : 1;
  const auto element = [&](const View& view, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) {
    return RowAt(view, b * view.strides[0] + s * view.strides[1] + h * view.strides[2] + d * view.strides[3]);
  };
  for (std::int64_t b = 0; b < op.in.sizes[0]; ++b) {
    for (std::int64_t s = 0; s < op.in.sizes[1]; ++s) {
      for (std::int64_t h = 0; h < op.in.sizes[2]; ++h) {
        for (std::int64_t i = 0; i < half; ++i) {
          const std::int64_t first = op.is_interleaved ? 2 * i : i;
          const std::int64_t second = op.is_interleaved ? 2 * i + 1 : i + half;
          const float x = static_cast<float>(host::LoadNumber(element(op.in, b, s, h, first), 0));
          const float y = static_cast<float>(host::LoadNumber(element(op.in, b, s, h, second), 0));
          const float c = cos[s * half + i];
          const float w = sign * sin[s * half + i];
          host::StoreNumber(element(op.out, b, s, h, first), 0, static_cast<double>(x * c - y * w));
          host::StoreNumber(element(op.out, b, s, h, second), 0, static_cast<double>(x * w + y * c));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ashlar::ops
