// Reductions, and ops along an index, on the host.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/ops/host/floats.h"
#include "kernels/ops/host/host_ops.h"
#include "kernels/ops/runs.h"

namespace ashlar::ops {
namespace {

using host::LoadInteger;
using host::LoadNumber;
using host::Row;
using host::RowAt;

double EmptyOf(ReduceKind kind) {
  if (kind == ReduceKind::kMaximum) return -std::numeric_limits<double>::infinity();
  if (kind == ReduceKind::kMinimum) return std::numeric_limits<double>::infinity();
  return 0;
}

void Add(ReduceKind kind, double& sum, double value) {
  switch (kind) {
    case ReduceKind::kSum:
    case ReduceKind::kMean:
      sum += value;
      return;
    case ReduceKind::kMaximum:
      sum = value > sum || value != value ? value : sum;
      return;
    case ReduceKind::kMinimum:
      sum = value < sum || value != value ? value : sum;
      return;
  }
}

// `view` with its dim `dim` taken out: the other dims of an indexed op.
View WithoutDim(const View& view, int dim) {
  View rest = view;
  rest.sizes.erase(rest.sizes.begin() + dim);
  rest.strides.erase(rest.strides.begin() + dim);
  return rest;
}

View Narrowed(View view, const Dims& sizes) {
  view.sizes = sizes;
  return view;
}

}  // namespace

absl::Status HostOps::Do(const Reduce& op) {
  const std::int64_t outputs = ElementCount(op.out.sizes);
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), static_cast<std::uint64_t>(outputs) * sizeof(double));
  if (!scratch.ok()) return scratch.status();
  double* sums = static_cast<double*>(scratch->data());
  std::fill(sums, sums + outputs, EmptyOf(op.kind));
  // The sums stand in for the output; 8 bytes an element, as an int64 has.
  const View out = Contiguous(sums, DType::kInt64, op.out.sizes);
  const Runs runs(op.in.sizes, {&op.in, &out});
  runs.ForEach([&](const Runs::Offsets& at) {
    const Row in = RowAt(op.in, at[0], runs.stride(0));
    float buffer[host::kPiece];
    host::ForPieces(runs.length(), [&](std::int64_t begin, std::int64_t count) {
      const float* values = host::Load(in, begin, count, buffer);
      double* to = sums + at[1] + begin * runs.stride(1);
      for (std::int64_t i = 0; i < count; ++i) Add(op.kind, to[i * runs.stride(1)], static_cast<double>(values[i]));
    });
  });
  const double scale = static_cast<double>(outputs) / static_cast<double>(ElementCount(op.in.sizes));
  const Runs results(op.out.sizes, {&op.out, &out});
  results.ForEach([&](const Runs::Offsets& at) {
    const Row to = RowAt(op.out, at[0], results.stride(0));
    for (std::int64_t i = 0; i < results.length(); ++i) {
      const double sum = sums[at[1] + i * results.stride(1)];
      host::StoreNumber(to, i, op.kind == ReduceKind::kMean ? sum * scale : sum);
    }
  });
  return absl::OkStatus();
}

absl::Status HostOps::Do(const MaxAlong& op) {
  const std::size_t dim = static_cast<std::size_t>(op.dim);
  const View values = WithoutDim(op.values, op.dim);
  const View indices = WithoutDim(op.indices, op.dim);
  const View in = WithoutDim(op.in, op.dim);
  const Runs runs(values.sizes, {&values, &indices, &in});
  runs.ForEach([&](const Runs::Offsets& at) {
    for (std::int64_t i = 0; i < runs.length(); ++i) {
      const Row row = RowAt(op.in, at[2] + i * runs.stride(2), op.in.strides[dim]);
      std::int64_t best = 0;
      double most = LoadNumber(row, 0);
      for (std::int64_t k = 1; k < op.in.sizes[dim] && !std::isnan(most); ++k) {
        const double value = LoadNumber(row, k);
        if (value > most || std::isnan(value)) {
          best = k;
          most = value;
        }
      }
      host::StoreNumber(RowAt(op.values, at[0] + i * runs.stride(0)), 0, most);
      host::StoreInteger(RowAt(op.indices, at[1] + i * runs.stride(1)), 0, best);
    }
  });
  return absl::OkStatus();
}

namespace {

// body(index element, its offset in the table, offset in the other operand) for each element, `dim` walked in order;
// kOutOfRange at an index outside of the table.
template <typename Body>
absl::Status ForEachIndexed(const char* name, const View& index, const View& other, const View& table, int dim,
                            const Body& body) {
  const std::size_t along = static_cast<std::size_t>(dim);
  const View rest = WithoutDim(other, dim);
  const View at_index = WithoutDim(index, dim);
  const View at_table = Narrowed(WithoutDim(table, dim), rest.sizes);
  const Runs runs(rest.sizes, {&rest, &at_index, &at_table});
  absl::Status status = absl::OkStatus();
  runs.ForEach([&](const Runs::Offsets& at) {
    for (std::int64_t i = 0; status.ok() && i < runs.length(); ++i) {
      const Row indices = RowAt(index, at[1] + i * runs.stride(1), index.strides[along]);
      for (std::int64_t k = 0; k < index.sizes[along]; ++k) {
        const std::int64_t entry = LoadInteger(indices, k);
        if (entry < 0 || entry >= table.sizes[along]) {
          status = absl::OutOfRangeError(
              absl::StrCat(name, ": index ", entry, " is outside [0, ", table.sizes[along], ") of dim ", dim));
          return;
        }
        body(at[0] + i * runs.stride(0) + k * other.strides[along],
             at[2] + i * runs.stride(2) + entry * table.strides[along]);
      }
    }
  });
  return status;
}

}  // namespace

absl::Status HostOps::Do(const Gather& op) {
  return ForEachIndexed(op.kName, op.index, op.out, op.in, op.dim, [&](std::int64_t out, std::int64_t in) {
    host::StoreNumber(RowAt(op.out, out), 0, LoadNumber(RowAt(op.in, in), 0));
  });
}

absl::Status HostOps::Do(const ScatterAdd& op) {
  return ForEachIndexed(op.kName, op.index, op.in, op.out, op.dim, [&](std::int64_t in, std::int64_t out) {
    const Row to = RowAt(op.out, out);
    host::StoreNumber(to, 0, LoadNumber(to, 0) + LoadNumber(RowAt(op.in, in), 0));
  });
}

}  // namespace ashlar::ops
