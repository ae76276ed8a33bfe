// Optimizer steps on the host.
#include <algorithm>
#include <cmath>

#include "kernels/ops/host/host_ops.h"
#include "kernels/ops/optimizer_rules.h"

namespace ashlar::ops {
namespace {

using host::ForPieces;
using host::kPiece;
using host::Load;
using host::OneFloat;
using host::Place;
using host::Row;
using host::RowAt;
using host::Store;

// body(parameters, gradients, begin, count) in pieces; the parameters are written back.
template <typename Body>
void Update(const View& parameter, const View& gradient, const Body& body) {
  float buffers[2][kPiece];
  ForPieces(ElementCount(parameter.sizes), [&](std::int64_t begin, std::int64_t count) {
    const Row row = RowAt(parameter, 0);
    const float* old = Load(row, begin, count, buffers[0]);
    body(const_cast<float*>(old), Load(RowAt(gradient, 0), begin, count, buffers[1]), begin, count);
    if (row.dtype != DType::kFloat32) Store(row, begin, count, old);
  });
}

float* FloatsOf(const View& view) { return static_cast<float*>(view.data); }

double SquaredSum(const View& view) {
  double sum = 0;
  float buffer[kPiece];
  ForPieces(ElementCount(view.sizes), [&](std::int64_t begin, std::int64_t count) {
    const float* x = Load(RowAt(view, 0), begin, count, buffer);
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  });
  return sum;
}

}  // namespace

absl::Status HostOps::Do(const AdamWStep& op) {
  const OnDevice& given = op.on_device;
  if (given.found_infinite && OneFloat(*given.found_infinite) != 0) return absl::OkStatus();
  const double step = given.step ? static_cast<double>(OneFloat(*given.step)) : static_cast<double>(op.step);
  const AdamWRule rule = AdamWRule::Of(op, step);
  const float inverse_scale = given.inverse_scale ? OneFloat(*given.inverse_scale) : 1;
  for (const AdamWTensor& tensor : op.tensors) {
    Update(tensor.parameter, tensor.gradient, [&](float* p, const float* g, std::int64_t begin, std::int64_t count) {
      float* m = FloatsOf(tensor.first) + begin;
      float* v = FloatsOf(tensor.second) + begin;
      for (std::int64_t i = 0; i < count; ++i) p[i] = rule.Step(p[i], g[i] * inverse_scale, m[i], v[i]);
    });
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const AdamW8BitStep& op) {
  const AdamWRule rule = AdamWRule::Of(op, static_cast<double>(op.step));
  const float* signed_map = SignedMap8Bit().data();
  const float* unsigned_map = UnsignedMap8Bit().data();
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), 2 * kBlock8Bit * sizeof(float));
  if (!scratch.ok()) return scratch.status();
  float* first = scratch->floats();
  float* second = first + kBlock8Bit;
  for (const AdamW8BitTensor& tensor : op.tensors) {
    const std::int64_t size = ElementCount(tensor.parameter.sizes);
    for (std::int64_t begin = 0; begin < size; begin += kBlock8Bit) {
      const std::int64_t count = std::min(kBlock8Bit, size - begin);
      std::uint8_t* first_code = static_cast<std::uint8_t*>(tensor.first.data) + begin;
      std::uint8_t* second_code = static_cast<std::uint8_t*>(tensor.second.data) + begin;
      float& first_scale = FloatsOf(tensor.first_scale)[begin / kBlock8Bit];
      float& second_scale = FloatsOf(tensor.second_scale)[begin / kBlock8Bit];
      float first_most = 0;
      float second_most = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        first[i] = signed_map[first_code[i]] * first_scale;
        second[i] = unsigned_map[second_code[i]] * second_scale;
        const Row p = RowAt(tensor.parameter, begin);
        const float g = static_cast<float>(host::LoadNumber(RowAt(tensor.gradient, begin), i));
        const float old = static_cast<float>(host::LoadNumber(p, i));
        host::StoreNumber(p, i, static_cast<double>(rule.Step(old, g, first[i], second[i])));
        first_most = std::max(first_most, std::fabs(first[i]));
        second_most = std::max(second_most, second[i]);
      }
      first_scale = first_most;
      second_scale = second_most;
      for (std::int64_t i = 0; i < count; ++i) {
        first_code[i] = first_most > 0 ? NearestCode(signed_map, first[i] / first_most) : kSignedZeroCode;
        second_code[i] = second_most > 0 ? NearestCode(unsigned_map, second[i] / second_most) : kUnsignedZeroCode;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const SgdStep& op) {
  const SgdRule rule = SgdRule::Of(op);
  for (const SgdTensor& tensor : op.tensors) {
    Update(tensor.parameter, tensor.gradient, [&](float* p, const float* g, std::int64_t begin, std::int64_t count) {
      float none = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        p[i] = rule.Step(p[i], g[i], tensor.momentum ? FloatsOf(*tensor.momentum)[begin + i] : none);
      }
    });
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const AdafactorStep& op) {
  const std::int64_t size = ElementCount(op.parameter.sizes);
  if (size == 0) return absl::OkStatus();
  const std::int64_t columns = op.row ? op.parameter.sizes[1] : size;
  const std::int64_t rows = size / columns;
  const double keep = op.beta2;
  const auto gradient = [&](std::int64_t i) { return host::LoadNumber(RowAt(op.gradient, 0), i); };
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), static_cast<std::uint64_t>(columns) * sizeof(double));
  if (!scratch.ok()) return scratch.status();
  double row_mean = 0;
  if (op.row) {
    double* sums = static_cast<double*>(scratch->data());
    std::fill(sums, sums + columns, 0.0);
    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::int64_t c = 0; c < columns; ++c) {
        const double square = gradient(r * columns + c) * gradient(r * columns + c) + op.epsilon1;
        sum += square;
        sums[c] += square;
      }
      float& row = FloatsOf(*op.row)[r];
      row = static_cast<float>(keep * static_cast<double>(row) + (1 - keep) * sum / static_cast<double>(columns));
      row_mean += static_cast<double>(row) / static_cast<double>(rows);
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      float& column = FloatsOf(*op.column)[c];
      column =
          static_cast<float>(keep * static_cast<double>(column) + (1 - keep) * sums[c] / static_cast<double>(rows));
    }
  } else {
    for (std::int64_t i = 0; i < size; ++i) {
      float& second = FloatsOf(*op.second)[i];
      const double square = gradient(i) * gradient(i) + op.epsilon1;
      second = static_cast<float>(keep * static_cast<double>(second) + (1 - keep) * square);
    }
  }
  const auto update = [&](std::int64_t i) {
    const double mean = op.row ? static_cast<double>(FloatsOf(*op.row)[i / columns]) / row_mean *
                                     static_cast<double>(FloatsOf(*op.column)[i % columns])
                               : static_cast<double>(FloatsOf(*op.second)[i]);
    return gradient(i) / std::sqrt(mean);
  };
  double squares = 0;
  for (std::int64_t i = 0; i < size; ++i) squares += update(i) * update(i);
  const double count = static_cast<double>(size);
  const double clip = std::max(1.0, std::sqrt(squares / count) / op.clip_threshold);
  const double rms = std::sqrt(SquaredSum(op.parameter) / count);
  const double rate = op.is_scaled ? op.learning_rate * std::max(op.epsilon2, rms) : op.learning_rate;
  for (std::int64_t i = 0; i < size; ++i) {
    const double p = host::LoadNumber(RowAt(op.parameter, 0), i);
    host::StoreNumber(RowAt(op.parameter, 0), i, p * (1 - op.weight_decay * rate) - rate * update(i) / clip);
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const ClipNorm& op) {
  double sum = 0;
  for (const View& gradient : op.gradients) sum += SquaredSum(gradient);
  const double norm = std::sqrt(sum);
  OneFloat(op.norm) = static_cast<float>(norm);
  const double scale = std::min(1.0, op.most / (norm + 1e-6));
  for (const View& gradient : op.gradients) {
    const absl::Status status = Do(Affine{.in = gradient, .scale = scale, .out = gradient});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Unscale& op) {
  const double scale = static_cast<double>(OneFloat(op.inverse_scale));
  for (const View& gradient : op.gradients) {
    const Row row = RowAt(gradient, 0);
    for (std::int64_t i = 0; i < ElementCount(gradient.sizes); ++i) {
      const double g = host::LoadNumber(row, i);
      if (!std::isfinite(g)) OneFloat(op.found_infinite) = 1;
      host::StoreNumber(row, i, g * scale);
    }
  }
  return absl::OkStatus();
}

}  // namespace ashlar::ops
