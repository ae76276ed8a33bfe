// Embedding lookup and the losses on the host.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/ops/host/host_ops.h"

namespace ashlar::ops {
namespace {

using host::ForPieces;
using host::kPiece;
using host::Load;
using host::LoadInteger;
using host::OneFloat;
using host::Place;
using host::Row;
using host::RowAt;
using host::Store;

absl::Status OutOfRange(const char* op, const char* what, std::int64_t value, std::int64_t at, std::int64_t size) {
  return absl::OutOfRangeError(
      absl::StrCat(op, ": ", what, " ", value, " at element ", at, " is outside [0, ", size, ")"));
}

// Each target is a class or ignored.
absl::Status CheckTargets(const char* op, const View& targets, std::int64_t ignore_index, std::int64_t classes) {
  for (std::int64_t i = 0; i < targets.sizes[0]; ++i) {
    const std::int64_t target = LoadInteger(RowAt(targets, 0), i);
    if (target != ignore_index && (target < 0 || target >= classes)) {
      return OutOfRange(op, "target", target, i, classes);
    }
  }
  return absl::OkStatus();
}

std::int64_t Counted(const View& targets, std::int64_t ignore_index) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < ElementCount(targets.sizes); ++i) {
    count += LoadInteger(RowAt(targets, 0), i) != ignore_index;
  }
  return count;
}

}  // namespace

absl::Status HostOps::Do(const Embedding& op) {
  const std::int64_t vocabulary = op.weight.sizes[0];
  const std::int64_t size = op.weight.sizes[1];
  const std::size_t row_bytes = static_cast<std::size_t>(size * SizeOf(op.weight.dtype));
  for (std::int64_t i = 0; i < ElementCount(op.indices.sizes); ++i) {
    const std::int64_t index = LoadInteger(RowAt(op.indices, 0), i);
    if (index < 0 || index >= vocabulary) return OutOfRange(op.kName, "index", index, i, vocabulary);
    if (row_bytes > 0) std::memcpy(RowAt(op.out, i * size).data, RowAt(op.weight, index * size).data, row_bytes);
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const EmbeddingBackward& op) {
  const std::int64_t vocabulary = op.grad_weight.sizes[0];
  const std::int64_t size = op.grad_weight.sizes[1];
  const std::int64_t count = ElementCount(op.indices.sizes);
  const Row indices = RowAt(op.indices, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = LoadInteger(indices, i);
    if (index < 0 || index >= vocabulary) return OutOfRange(op.kName, "index", index, i, vocabulary);
  }
  if (!op.is_accumulated) {
    const absl::Status status = Do(Fill{.out = op.grad_weight, .value = 0});
    if (!status.ok()) return status;
  }
  // Positions by index and then by place; float sums of one row at a time.
  const std::uint64_t sums_bytes = static_cast<std::uint64_t>(size) * sizeof(float);
  absl::StatusOr<Scratch> positions =
      Scratch::Take(workspace(), static_cast<std::uint64_t>(count) * sizeof(std::int64_t));
  absl::StatusOr<Scratch> sums = Scratch::Take(workspace(), sums_bytes);
  if (!positions.ok()) return positions.status();
  if (!sums.ok()) return sums.status();
  std::int64_t* order = static_cast<std::int64_t*>(positions->data());
  for (std::int64_t i = 0; i < count; ++i) order[i] = i;
  std::sort(order, order + count, [&](std::int64_t a, std::int64_t b) {
    const std::int64_t left = LoadInteger(indices, a);
    const std::int64_t right = LoadInteger(indices, b);
    return left != right ? left < right : a < b;
  });
  for (std::int64_t begin = 0; begin < count;) {
    const std::int64_t index = LoadInteger(indices, order[begin]);
    std::int64_t end = begin;
    while (end < count && LoadInteger(indices, order[end]) == index) ++end;
    const Row to = RowAt(op.grad_weight, index * size);
    if (index != op.padding_index) {
      ForPieces(size, [&](std::int64_t from, std::int64_t length) {
        float buffer[kPiece];
        float* sum = sums->floats();
        std::fill(sum, sum + length, 0.0f);
        for (std::int64_t i = begin; i < end; ++i) {
          const float* grad = Load(RowAt(op.grad, order[i] * size), from, length, buffer);
          for (std::int64_t k = 0; k < length; ++k) sum[k] += grad[k];
        }
        const float* old = Load(to, from, length, buffer);
        for (std::int64_t k = 0; op.is_accumulated && k < length; ++k) sum[k] += old[k];
        Store(to, from, length, sum);
      });
    }
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const CountTargets& op) {
  OneFloat(op.total) = static_cast<float>(Counted(op.targets, op.ignore_index));
  return absl::OkStatus();
}

absl::Status HostOps::Do(const NllLoss& op) {
  const std::int64_t classes = op.log_probabilities.sizes[1];
  if (absl::Status status = CheckTargets(op.kName, op.targets, op.ignore_index, classes); !status.ok()) return status;
  double sum = 0;
  for (std::int64_t i = 0; i < op.targets.sizes[0]; ++i) {
    const std::int64_t target = LoadInteger(RowAt(op.targets, 0), i);
    if (target != op.ignore_index) sum -= host::LoadNumber(RowAt(op.log_probabilities, i * classes), target);
  }
  const double total = static_cast<double>(Counted(op.targets, op.ignore_index));
  OneFloat(op.total) = static_cast<float>(total);
  OneFloat(op.loss) = static_cast<float>(sum / total);
  return absl::OkStatus();
}

absl::Status HostOps::Do(const NllLossBackward& op) {
  const std::int64_t classes = op.out.sizes[1];
  if (absl::Status status = CheckTargets(op.kName, op.targets, op.ignore_index, classes); !status.ok()) return status;
  if (absl::Status status = Do(Fill{.out = op.out, .value = 0}); !status.ok()) return status;
  const double slope = -static_cast<double>(OneFloat(op.grad_loss)) / static_cast<double>(OneFloat(op.total));
  for (std::int64_t i = 0; i < op.targets.sizes[0]; ++i) {
    const std::int64_t target = LoadInteger(RowAt(op.targets, 0), i);
    if (target != op.ignore_index) host::StoreNumber(RowAt(op.out, i * classes), target, slope);
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const CrossEntropy& op) {
  const std::int64_t classes = op.logits.sizes[1];
  if (absl::Status status = CheckTargets(op.kName, op.targets, op.ignore_index, classes); !status.ok()) return status;
  double loss = 0;
  for (std::int64_t r = 0; r < op.logits.sizes[0]; ++r) {
    const Row row = RowAt(op.logits, r * classes);
    float most = -std::numeric_limits<float>::infinity();
    double sum = 0;
    float buffer[kPiece];
    ForPieces(classes, [&](std::int64_t begin, std::int64_t count) {
      const float* x = Load(row, begin, count, buffer);
      const float highest = std::max(most, *std::max_element(x, x + count));
      if (highest > most) sum *= std::exp(static_cast<double>(most - highest));
      most = highest;
      for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(std::exp(x[i] - most));
    });
    const double log_sum_exp = static_cast<double>(most) + std::log(sum);
    const std::int64_t target = LoadInteger(RowAt(op.targets, 0), r);
    const double row_loss = target == op.ignore_index ? 0 : log_sum_exp - host::LoadNumber(row, target);
    static_cast<float*>(op.log_sum_exp.data)[r] = static_cast<float>(log_sum_exp);
    static_cast<float*>(op.row_loss.data)[r] = static_cast<float>(row_loss);
    loss += row_loss;
  }
  const double total = static_cast<double>(Counted(op.targets, op.ignore_index));
  OneFloat(op.total) = static_cast<float>(total);
  OneFloat(op.loss) = static_cast<float>(loss / total);
  return absl::OkStatus();
}

absl::Status HostOps::Do(const CrossEntropyBackward& op) {
  const std::int64_t classes = op.logits.sizes[1];
  if (absl::Status status = CheckTargets(op.kName, op.targets, op.ignore_index, classes); !status.ok()) return status;
  const float slope = OneFloat(op.grad_loss) / OneFloat(op.total);
  for (std::int64_t r = 0; r < op.logits.sizes[0]; ++r) {
    const Row row = RowAt(op.logits, r * classes);
    const Row out = RowAt(op.out, r * classes);
    const std::int64_t target = LoadInteger(RowAt(op.targets, 0), r);
    const float log_sum_exp = static_cast<const float*>(op.log_sum_exp.data)[r];
    float buffers[2][kPiece];
    ForPieces(classes, [&](std::int64_t begin, std::int64_t count) {
      const float* x = Load(row, begin, count, buffers[0]);
      float* y = Place(out, begin, buffers[1]);
      for (std::int64_t i = 0; i < count; ++i) {
        const float one = begin + i == target ? 1 : 0;
        y[i] = target == op.ignore_index ? 0 : slope * (std::exp(x[i] - log_sum_exp) - one);
      }
      Store(out, begin, count, y);
    });
  }
  return absl::OkStatus();
}

}  // namespace ashlar::ops
