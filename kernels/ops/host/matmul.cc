// Matrix products on the host: OpenBLAS for float32 where the build found it, else blocks that stay in the caches.
#include <algorithm>
#include <cstring>

#include "kernels/ops/host/host_ops.h"
#ifdef ASHLAR_HAVE_OPENBLAS
#include <cblas.h>
#endif

namespace ashlar::ops {
namespace {

using host::Row;
using host::RowAt;

// Without fused multiply-add, so that both versions give the same sums.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define ASHLAR_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define ASHLAR_WIDE
#endif

constexpr std::int64_t kRows = 4;  // of a register tile
constexpr std::int64_t kColumns = 16;
constexpr std::int64_t kBlockRows = 64;  // of a tile of the result
constexpr std::int64_t kBlockColumns = 128;
constexpr std::int64_t kBlockDepth = 256;  // 64 + 128 KiB packed: within a second-level cache

struct PackedTile {
  alignas(64) float left[kBlockRows * kBlockDepth];      // in strips of kRows, depth by depth
  alignas(64) float right[kBlockColumns * kBlockDepth];  // in strips of kColumns
  alignas(64) float sum[kBlockRows * kBlockColumns];
};

// tile.sum += left x right over `depth`.
ASHLAR_WIDE void Multiply(PackedTile& tile, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  typedef float Lanes __attribute__((vector_size(32)));
  for (std::int64_t j = 0; j < columns; j += kColumns) {
    for (std::int64_t i = 0; i < rows; i += kRows) {
      const float* left = tile.left + i * depth;
      const float* right = tile.right + j * depth;
      Lanes sum[kRows][2];
      float* to = tile.sum + i * kBlockColumns + j;
      for (int r = 0; r < kRows; ++r) std::memcpy(sum[r], to + r * kBlockColumns, sizeof sum[r]);
      for (std::int64_t k = 0; k < depth; ++k) {
        Lanes low;
        Lanes high;
        std::memcpy(&low, right + k * kColumns, sizeof low);
        std::memcpy(&high, right + k * kColumns + 8, sizeof high);
        for (int r = 0; r < kRows; ++r) {
          sum[r][0] += left[k * kRows + r] * low;
          sum[r][1] += left[k * kRows + r] * high;
        }
      }
      for (int r = 0; r < kRows; ++r) std::memcpy(to + r * kBlockColumns, sum[r], sizeof sum[r]);
    }
  }
}

// A matrix of one batch entry: element (row, column) lies at row * row_step + column * column_step.
struct Matrix {
  View view;
  std::int64_t offset = 0;
  std::int64_t row_step = 0;
  std::int64_t column_step = 0;
};

Matrix MatrixOf(const View& view, std::int64_t batch) {
  const std::size_t rank = view.sizes.size();
  return {view, rank == 3 ? batch * view.strides[0] : 0, view.strides[rank - 2], view.strides[rank - 1]};
}

// Packs `lines` lines from `line` on, each of `depth` elements from `begin`, into strips of kWidth; 0 behind the last.
template <std::int64_t kWidth>
void Pack(const Matrix& m, std::int64_t line_step, std::int64_t depth_step, std::int64_t line, std::int64_t lines,
          std::int64_t begin, std::int64_t depth, float* packed) {
  float buffer[host::kPiece];
  static_assert(kBlockDepth <= host::kPiece && kBlockColumns <= host::kPiece);
  if (depth_step == 1) {
    for (std::int64_t i = 0; i < (lines + kWidth - 1) / kWidth * kWidth; ++i) {
      float* to = packed + i / kWidth * kWidth * depth + i % kWidth;
      if (i >= lines) {
        for (std::int64_t k = 0; k < depth; ++k) to[k * kWidth] = 0;
        continue;
      }
      const Row row = RowAt(m.view, m.offset + (line + i) * line_step + begin);
      const float* from = host::Load(row, 0, depth, buffer);
      for (std::int64_t k = 0; k < depth; ++k) to[k * kWidth] = from[k];
    }
    return;
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const Row row = RowAt(m.view, m.offset + line * line_step + (begin + k) * depth_step, line_step);
    const float* from = host::Load(row, 0, lines, buffer);
    for (std::int64_t i = 0; i < lines; i += kWidth) {
      float* to = packed + i * depth + k * kWidth;
      const std::int64_t width = std::min(kWidth, lines - i);
      std::copy(from + i, from + i + width, to);
      std::fill(to + width, to + kWidth, 0.0f);
    }
  }
}

void MultiplyBlocks(const MatMul& op, const Matrix& left, const Matrix& right, const Matrix& out, PackedTile& tile) {
  const std::size_t rank = op.out.sizes.size();
  const std::int64_t rows = op.out.sizes[rank - 2];
  const std::int64_t columns = op.out.sizes[rank - 1];
  const std::int64_t depth = op.left.sizes[rank - 1];
  const float scale = static_cast<float>(op.scale);
  const float out_scale = static_cast<float>(op.out_scale);
  const std::optional<View> bias = op.bias ? BroadcastTo(*op.bias, {rows, columns}) : std::nullopt;
  for (std::int64_t i = 0; i < rows; i += kBlockRows) {
    const std::int64_t high = std::min(kBlockRows, rows - i);
    for (std::int64_t j = 0; j < columns; j += kBlockColumns) {
      const std::int64_t wide = std::min(kBlockColumns, columns - j);
      std::fill(std::begin(tile.sum), std::end(tile.sum), 0.0f);
      for (std::int64_t k = 0; k < depth; k += kBlockDepth) {
        const std::int64_t deep = std::min(kBlockDepth, depth - k);
        Pack<kRows>(left, left.row_step, left.column_step, i, high, k, deep, tile.left);
        Pack<kColumns>(right, right.column_step, right.row_step, j, wide, k, deep, tile.right);
        Multiply(tile, high, wide, deep);
      }
      for (std::int64_t r = 0; r < high; ++r) {
        float buffer[kBlockColumns];
        float* sum = tile.sum + r * kBlockColumns;
        const Row to = RowAt(op.out, out.offset + (i + r) * out.row_step + j);
        const float* old = out_scale == 0 ? nullptr : host::Load(to, 0, wide, buffer);
        for (std::int64_t c = 0; c < wide; ++c) sum[c] = sum[c] * scale + (old == nullptr ? 0 : out_scale * old[c]);
        if (bias) {
          const Row row = RowAt(*bias, (i + r) * bias->strides[0] + j * bias->strides[1], bias->strides[1]);
          const float* add = host::Load(row, 0, wide, buffer);
          for (std::int64_t c = 0; c < wide; ++c) sum[c] += add[c];
        }
        host::Store(to, 0, wide, sum);
      }
    }
  }
}

#ifdef ASHLAR_HAVE_OPENBLAS
// One float32 product; the bias, if any, is in `out` already and out_scale counts it in.
void MultiplyByBlas(const MatMul& op, const Matrix& left, const Matrix& right, const Matrix& out, float out_scale) {
  const std::size_t rank = op.out.sizes.size();
  const auto blas_int = [](std::int64_t value) { return static_cast<blasint>(value); };
  const bool left_turned = left.column_step != 1 && op.left.sizes[rank - 1] > 1;
  const bool right_turned = right.column_step != 1 && op.right.sizes[rank - 1] > 1;
  const auto row_length = [&](const Matrix& m, const View& view, bool turned) {
    const std::int64_t step = turned ? m.column_step : m.row_step;
    return blas_int(std::max({step, view.sizes[turned ? rank - 2 : rank - 1], std::int64_t{1}}));
  };
  cblas_sgemm(CblasRowMajor, left_turned ? CblasTrans : CblasNoTrans, right_turned ? CblasTrans : CblasNoTrans,
              blas_int(op.out.sizes[rank - 2]), blas_int(op.out.sizes[rank - 1]), blas_int(op.left.sizes[rank - 1]),
              static_cast<float>(op.scale), static_cast<const float*>(left.view.data) + left.offset,
              row_length(left, op.left, left_turned), static_cast<const float*>(right.view.data) + right.offset,
              row_length(right, op.right, right_turned), out_scale, static_cast<float*>(out.view.data) + out.offset,
              row_length(out, op.out, false));
}
#endif

}  // namespace

absl::Status HostOps::Do(const MatMul& op) {
  const std::int64_t batches = op.out.rank() == 3 ? op.out.sizes[0] : 1;
  if (ElementCount(op.out.sizes) == 0) return absl::OkStatus();
#ifdef ASHLAR_HAVE_OPENBLAS
  if (op.out.dtype == DType::kFloat32) {
    double out_scale = op.out_scale;
    if (op.bias) {
      View bias = *op.bias;
      const Binary add = {.kind = BinaryKind::kAdd, .left = bias, .right = op.out, .scale = out_scale, .out = op.out};
      const absl::Status status = out_scale == 0 ? Do(Copy{.in = bias, .out = op.out}) : Do(add);
      if (!status.ok()) return status;
      out_scale = 1;
    }
    for (std::int64_t b = 0; b < batches; ++b) {
      MultiplyByBlas(op, MatrixOf(op.left, b), MatrixOf(op.right, b), MatrixOf(op.out, b),
                     static_cast<float>(out_scale));
    }
    return absl::OkStatus();
  }
#endif
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), sizeof(PackedTile));
  if (!scratch.ok()) return scratch.status();
  for (std::int64_t b = 0; b < batches; ++b) {
    MultiplyBlocks(op, MatrixOf(op.left, b), MatrixOf(op.right, b), MatrixOf(op.out, b),
                   *static_cast<PackedTile*>(scratch->data()));
  }
  return absl::OkStatus();
}

}  // namespace ashlar::ops
