// Softmax and dropout on the host.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ops/host/floats.h"
#include "kernels/ops/host/host_ops.h"
#include "kernels/ops/philox.h"

namespace ashlar::ops {
namespace {

using host::ForPieces;
using host::kPiece;
using host::Load;
using host::Place;
using host::Row;
using host::RowAt;
using host::Store;

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Where row `row` of sizes (its last dim left out) begins in a view that was broadcast to them.
std::int64_t RowOffset(const View& view, std::int64_t row) {
  std::int64_t offset = 0;
  for (std::size_t i = view.sizes.size() - 1; i-- > 0;) {
    offset += row % view.sizes[i] * view.strides[i];
    row /= view.sizes[i];
  }
  return offset;
}

// in[0..size) *= scale, what is left out becomes -inf; the largest.
float ScaleAndMask(const Softmax& op, const std::optional<View>& mask, std::int64_t row, std::int64_t size, float* x) {
  const float scale = static_cast<float>(op.scale);
  for (std::int64_t i = 0; i < size; ++i) x[i] *= scale;
  if (op.is_causal) {
    const std::int64_t queries = op.in.sizes[op.in.sizes.size() - 2];
    const std::int64_t seen = row % queries + size - queries + 1;
    for (std::int64_t i = std::max<std::int64_t>(seen, 0); i < size; ++i) x[i] = kMasked;
  }
  if (mask) {
    const std::uint8_t* left_out = static_cast<const std::uint8_t*>(mask->data) + RowOffset(*mask, row);
    for (std::int64_t i = 0; i < size; ++i) x[i] = left_out[i * mask->strides.back()] ? kMasked : x[i];
  }
  float most = kMasked;
  for (std::int64_t i = 0; i < size; ++i) most = std::max(most, x[i]);
  return most;
}

}  // namespace

absl::Status HostOps::Do(const Softmax& op) {
  const std::int64_t size = op.in.sizes.back();
  const std::int64_t rows = size == 0 ? 0 : ElementCount(op.in.sizes) / size;
  const std::optional<View> mask = op.mask ? BroadcastTo(*op.mask, op.in.sizes) : std::nullopt;
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), static_cast<std::uint64_t>(size) * sizeof(float));
  if (!scratch.ok()) return scratch.status();
  float* x = scratch->floats();
  for (std::int64_t row = 0; row < rows; ++row) {
    const Row in = RowAt(op.in, row * size);
    ForPieces(size, [&](std::int64_t begin, std::int64_t count) {
      const float* from = Load(in, begin, count, x + begin);
      if (from != x + begin) std::copy(from, from + count, x + begin);
    });
    const float most = ScaleAndMask(op, mask, row, size, x);
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(std::exp(x[i] - most));
    const float shift = most + static_cast<float>(std::log(sum));
    const float factor = static_cast<float>(1 / sum);
    for (std::int64_t i = 0; i < size; ++i) {
      if (most == kMasked) {
        x[i] = op.is_log ? kMasked : 0;
      } else {
        x[i] = op.is_log ? x[i] - shift : std::exp(x[i] - most) * factor;
      }
    }
    Store(RowAt(op.out, row * size), 0, size, x);
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const SoftmaxBackward& op) {
  const std::int64_t size = op.grad.sizes.back();
  const std::int64_t rows = size == 0 ? 0 : ElementCount(op.grad.sizes) / size;
  const float scale = static_cast<float>(op.scale);
  float buffers[3][kPiece];
  for (std::int64_t r = 0; r < rows; ++r) {
    const Row grad = RowAt(op.grad, r * size);
    const Row result = RowAt(op.result, r * size);
    double sum = 0;
    ForPieces(size, [&](std::int64_t begin, std::int64_t count) {
      const float* g = Load(grad, begin, count, buffers[0]);
      const float* y = Load(result, begin, count, buffers[1]);
      for (std::int64_t i = 0; i < count; ++i) {
        if (op.is_log ? y[i] != kMasked : y[i] != 0) sum += static_cast<double>(op.is_log ? g[i] : g[i] * y[i]);
      }
    });
    const float total = static_cast<float>(sum);
    const Row out = RowAt(op.out, r * size);
    ForPieces(size, [&](std::int64_t begin, std::int64_t count) {
      const float* g = Load(grad, begin, count, buffers[0]);
      const float* y = Load(result, begin, count, buffers[1]);
      float* x = Place(out, begin, buffers[2]);
      for (std::int64_t i = 0; i < count; ++i) {
        if (op.is_log) {
          x[i] = y[i] == kMasked ? 0 : scale * (g[i] - std::exp(y[i]) * total);
        } else {
          x[i] = scale * y[i] * (g[i] - total);
        }
      }
      Store(out, begin, count, x);
    });
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Dropout& op) {
  const std::uint32_t threshold = DropThreshold(op.p);
  const float factor = static_cast<float>(1 / (1 - op.p));
  std::uint8_t* mask = static_cast<std::uint8_t*>(op.mask.data);
  float buffers[2][kPiece];
  static_assert(kPiece % 4 == 0);
  ForPieces(ElementCount(op.in.sizes), [&](std::int64_t begin, std::int64_t count) {
    const float* x = Load(RowAt(op.in, 0), begin, count, buffers[0]);
    float* y = Place(RowAt(op.out, 0), begin, buffers[1]);
    for (std::int64_t i = 0; i < count; i += 4) {
      const PhiloxWords words = PhiloxAt(op.key.seed, op.key.offset + static_cast<std::uint64_t>(begin + i) / 4);
      for (std::int64_t k = i; k < std::min(i + 4, count); ++k) {
        const bool is_kept = IsKept(words.word[k - i], threshold);
        mask[begin + k] = is_kept;
        y[k] = is_kept ? x[k] * factor : 0;
      }
    }
    Store(RowAt(op.out, 0), begin, count, y);
  });
  return absl::OkStatus();
}

absl::Status HostOps::Do(const DropoutBackward& op) {
  const float factor = static_cast<float>(1 / (1 - op.p));
  const std::uint8_t* mask = static_cast<const std::uint8_t*>(op.mask.data);
  float buffers[2][kPiece];
  ForPieces(ElementCount(op.grad.sizes), [&](std::int64_t begin, std::int64_t count) {
    const float* g = Load(RowAt(op.grad, 0), begin, count, buffers[0]);
    float* x = Place(RowAt(op.out, 0), begin, buffers[1]);
    for (std::int64_t i = 0; i < count; ++i) x[i] = mask[begin + i] ? g[i] * factor : 0;
    Store(RowAt(op.out, 0), begin, count, x);
  });
  return absl::OkStatus();
}

}  // namespace ashlar::ops
