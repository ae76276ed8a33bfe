// Softmax and dropout on the host.

#include <algorithm>
#include <cmath>
#include <limits>

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

// Tiled attention on the host: scores live in a tile of keys, the softmax is kept up to date as tiles come (Milakov,
// Gimelshein, arXiv 1805.02867; Rabe, Staats, arXiv 2112.05682; Dao et al., arXiv 2205.14135).

namespace {

constexpr std::int64_t kTile = 64;  // keys
constexpr std::int64_t kMostHead = 256;
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// In eight lanes, so that it vectorises; the same order on every machine.
float Dot(const float* a, const float* b, std::int64_t count) {
  float lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int k = 0; k < 8; ++k) lanes[k] += a[i + k] * b[i + k];
  }
  for (; i < count; ++i) lanes[0] += a[i] * b[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

void AddScaled(float* to, float factor, const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

// What one (batch, key head) needs of the inputs.
struct Head {
  const AttentionInputs& in;
  std::int64_t batch = 0;
  std::int64_t heads = in.query.sizes[1];
  std::int64_t group = in.query.sizes[1] / in.key.sizes[1];  // query heads of a key head
  std::int64_t most_queries = in.query.sizes[2];
  std::int64_t most_keys = in.key.sizes[2];
  std::int64_t size = in.query.sizes[3];
  std::int64_t queries = Length(in.query_lengths, most_queries);
  std::int64_t keys = Length(in.key_lengths, most_keys);
  float scale = static_cast<float>(in.scale);
  std::uint32_t threshold = DropThreshold(in.dropout_p);
  float keep_factor = static_cast<float>(1 / (1 - in.dropout_p));
  std::optional<View> bias =
      in.bias ? BroadcastTo(*in.bias, {in.query.sizes[0], heads, most_queries, most_keys}) : std::optional<View>();

  std::int64_t Length(const std::optional<View>& lengths, std::int64_t most) const {
    if (!lengths) return most;
    return std::clamp<std::int64_t>(host::LoadInteger(RowAt(*lengths, 0), batch), 0, most);
  }
  // Keys that a query sees.
  std::int64_t Seen(std::int64_t query) const {
    return in.is_causal ? std::clamp<std::int64_t>(query + keys - queries + 1, 0, keys) : keys;
  }
  // Added to a scaled score.
  float Bias(std::int64_t head, std::int64_t query, std::int64_t key) const {
    if (!bias) return 0;
    const Dims& step = bias->strides;
    const std::int64_t at = batch * step[0] + head * step[1] + query * step[2] + key * step[3];
    return static_cast<float>(host::LoadNumber(RowAt(*bias, 0), at));
  }
  // 0 or 1 / (1 - p).
  float Keep(std::int64_t head, std::int64_t query, std::int64_t key) const {
    if (threshold == 0) return 1;
    const std::int64_t i = ((batch * heads + head) * most_queries + query) * most_keys + key;
    const PhiloxWords words = PhiloxAt(in.random.seed, in.random.offset + static_cast<std::uint64_t>(i) / 4);
    return IsKept(words.word[i % 4], threshold) ? keep_factor : 0;
  }
};

std::int64_t OffsetOf(const View& view, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return batch * view.strides[0] + head * view.strides[1] + row * view.strides[2];
}

// Rows [0, rows) of one head as floats, one after the other.
void LoadRows(const View& view, std::int64_t batch, std::int64_t head, std::int64_t rows, float* to) {
  const std::int64_t size = view.sizes[3];
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* from = host::Load(RowAt(view, OffsetOf(view, batch, head, i)), 0, size, to + i * size);
    if (from != to + i * size) std::copy(from, from + size, to + i * size);
  }
}

void StoreRows(const View& view, std::int64_t batch, std::int64_t head, const float* from) {
  const std::int64_t size = view.sizes[3];
  for (std::int64_t i = 0; i < view.sizes[2]; ++i) {
    host::Store(RowAt(view, OffsetOf(view, batch, head, i)), 0, size, from + i * size);
  }
}

// One query against its keys: `out` gets the mean of the values, and the log-sum-exp returns.
float Attend(const Head& head, std::int64_t h, std::int64_t query, const float* q, const float* keys,
             const float* values, float* out) {
  float most = kNothing;
  float sum = 0;
  std::fill(out, out + head.size, 0.0f);
  const std::int64_t seen = head.Seen(query);
  for (std::int64_t begin = 0; begin < seen; begin += kTile) {
    const std::int64_t count = std::min(kTile, seen - begin);
    float scores[kTile];
    float highest = most;
    for (std::int64_t j = 0; j < count; ++j) {
      scores[j] = head.scale * Dot(q, keys + (begin + j) * head.size, head.size) + head.Bias(h, query, begin + j);
      highest = std::max(highest, scores[j]);
    }
    if (highest == kNothing) continue;             // a bias hides the whole tile
    const float decay = std::exp(most - highest);  // 0 in the first tile
    sum *= decay;
    for (std::int64_t d = 0; d < head.size; ++d) out[d] *= decay;
    most = highest;
    for (std::int64_t j = 0; j < count; ++j) {
      const float weight = std::exp(scores[j] - most);
      sum += weight;
      AddScaled(out, weight * head.Keep(h, query, begin + j), values + (begin + j) * head.size, head.size);
    }
  }
  if (sum == 0) return kNothing;
  for (std::int64_t d = 0; d < head.size; ++d) out[d] /= sum;
  return most + std::log(sum);
}

}  // namespace

absl::Status HostOps::Do(const TiledAttention& op) {
  const AttentionInputs& in = op.inputs;
  const std::int64_t size = in.query.sizes[3];
  const std::int64_t most_keys = in.key.sizes[2];
  absl::StatusOr<Scratch> scratch =
      Scratch::Take(workspace(), 2 * static_cast<std::uint64_t>(most_keys * size) * sizeof(float));
  if (!scratch.ok()) return scratch.status();
  float* keys = scratch->floats();
  float* values = keys + most_keys * size;
  for (std::int64_t batch = 0; batch < in.query.sizes[0]; ++batch) {
    const Head head = {.in = in, .batch = batch};
    for (std::int64_t h = 0; h < head.heads; ++h) {
      if (h % head.group == 0) {
        LoadRows(in.key, batch, h / head.group, head.keys, keys);
        LoadRows(in.value, batch, h / head.group, head.keys, values);
      }
      for (std::int64_t i = 0; i < head.most_queries; ++i) {
        float out[kMostHead] = {};
        float buffer[kMostHead];
        float log_sum = kNothing;
        if (i < head.queries) {
          const float* q = host::Load(RowAt(in.query, OffsetOf(in.query, batch, h, i)), 0, size, buffer);
          log_sum = Attend(head, h, i, q, keys, values, out);
        }
        host::Store(RowAt(op.out, OffsetOf(op.out, batch, h, i)), 0, size, out);
        if (op.log_sum_exp.data == nullptr) continue;
        static_cast<float*>(op.log_sum_exp.data)[(batch * head.heads + h) * head.most_queries + i] = log_sum;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const TiledAttentionBackward& op) {
  const AttentionInputs& in = op.inputs;
  const std::int64_t size = in.query.sizes[3];
  const std::int64_t most_keys = in.key.sizes[2];
  const std::int64_t matrix = most_keys * size;
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), 4 * static_cast<std::uint64_t>(matrix) * sizeof(float));
  if (!scratch.ok()) return scratch.status();
  float* keys = scratch->floats();
  float* values = keys + matrix;
  float* grad_keys = values + matrix;
  float* grad_values = grad_keys + matrix;
  for (std::int64_t batch = 0; batch < in.query.sizes[0]; ++batch) {
    const Head head = {.in = in, .batch = batch};
    for (std::int64_t h = 0; h < head.heads; ++h) {
      if (h % head.group == 0) {
        LoadRows(in.key, batch, h / head.group, head.keys, keys);
        LoadRows(in.value, batch, h / head.group, head.keys, values);
        std::fill(grad_keys, grad_keys + 2 * matrix, 0.0f);
      }
      for (std::int64_t i = 0; i < head.most_queries; ++i) {
        float buffers[3][kMostHead];
        float grad_query[kMostHead] = {};
        if (i < head.queries) {
          const float* q = host::Load(RowAt(in.query, OffsetOf(in.query, batch, h, i)), 0, size, buffers[0]);
          const float* g = host::Load(RowAt(op.grad, OffsetOf(op.grad, batch, h, i)), 0, size, buffers[1]);
          const float* y = host::Load(RowAt(op.out, OffsetOf(op.out, batch, h, i)), 0, size, buffers[2]);
          const float delta = Dot(g, y, size);
          const float log_sum =
              static_cast<const float*>(op.log_sum_exp.data)[(batch * head.heads + h) * head.most_queries + i];
          for (std::int64_t j = 0; j < head.Seen(i); ++j) {
            const float* k = keys + j * size;
            const float keep = head.Keep(h, i, j);
            const float score = head.scale * Dot(q, k, size) + head.Bias(h, i, j);
            const float weight = score == kNothing ? 0 : std::exp(score - log_sum);
            const float slope = head.scale * weight * (Dot(g, values + j * size, size) * keep - delta);
            AddScaled(grad_query, slope, k, size);
            AddScaled(grad_keys + j * size, slope, q, size);
            AddScaled(grad_values + j * size, weight * keep, g, size);
          }
        }
        host::Store(RowAt(op.grad_query, OffsetOf(op.grad_query, batch, h, i)), 0, size, grad_query);
      }
      if ((h + 1) % head.group == 0) {
        StoreRows(op.grad_key, batch, h / head.group, grad_keys);
        StoreRows(op.grad_value, batch, h / head.group, grad_values);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ashlar::ops
