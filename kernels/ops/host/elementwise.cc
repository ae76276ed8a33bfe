// The ops of elementwise.h on the host, but for reductions and indices.

#include "kernels/ops/elementwise.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/ops/host/host_ops.h"
#include "kernels/ops/pointwise.h"
#include "kernels/ops/view.h"

namespace ashlar::ops {
namespace {

using host::ForPieces;
using host::kPiece;
using host::Load;
using host::LoadInteger;
using host::LoadNumber;
using host::Place;
using host::Row;
using host::RowAt;
using host::Store;

Row RunOf(const View& view, const Runs& runs, const Runs::Offsets& at, int operand) {
  return RowAt(view, at[static_cast<std::size_t>(operand)], runs.stride(operand));
}

// body(out, x, y, z, count): floats in, floats out; unused inputs are those of `a`.
template <typename Body>
void Pointwise(const View& out, const View& a, const View& b, const View& c, const Body& body) {
  const Runs runs(out.sizes, {&out, &a, &b, &c});
  runs.ForEach([&](const Runs::Offsets& at) {
    const Row to = RunOf(out, runs, at, 0);
    const Row x = RunOf(a, runs, at, 1);
    const Row y = RunOf(b, runs, at, 2);
    const Row z = RunOf(c, runs, at, 3);
    float buffers[4][kPiece];
    ForPieces(runs.length(), [&](std::int64_t begin, std::int64_t count) {
      float* result = Place(to, begin, buffers[0]);
      const float* left = Load(x, begin, count, buffers[1]);
      const float* middle = &b == &a ? left : Load(y, begin, count, buffers[2]);
      const float* right = &c == &a ? left : Load(z, begin, count, buffers[3]);
      body(result, left, middle, right, count);
      Store(to, begin, count, result);
    });
  });
}

template <typename T>
void CopyBits(const View& in, const View& out) {
  const Runs runs(out.sizes, {&out, &in});
  const std::int64_t from_step = runs.stride(1);
  const std::int64_t to_step = runs.stride(0);
  runs.ForEach([&](const Runs::Offsets& at) {
    T* to = static_cast<T*>(out.data) + at[0];
    const T* from = static_cast<const T*>(in.data) + at[1];
    if (from_step == 1 && to_step == 1) {
      std::memmove(to, from, static_cast<std::size_t>(runs.length()) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < runs.length(); ++i) to[i * to_step] = from[i * from_step];
    }
  });
}

void CopySameType(const View& in, const View& out) {
  switch (SizeOf(in.dtype)) {
    case 1:
      return CopyBits<std::uint8_t>(in, out);
    case 2:
      return CopyBits<std::uint16_t>(in, out);
    case 4:
      return CopyBits<std::uint32_t>(in, out);
    default:
      return CopyBits<std::uint64_t>(in, out);
  }
}

// One element of `dtype`, seen with any sizes.
class Constant {
 public:
  Constant(DType dtype, double value) : view_({.data = bytes_, .dtype = dtype}) {
    host::StoreNumber(RowAt(view_, 0), 0, value);
  }
  const View& view() const { return view_; }

 private:
  alignas(8) char bytes_[8] = {};
  View view_;
};

}  // namespace

absl::Status HostOps::Do(const Fill& op) {
  CopySameType(Constant(op.out.dtype, op.value).view(), op.out);
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Arange& op) {
  const Row row = RowAt(op.out, 0, op.out.strides[0]);
  for (std::int64_t i = 0; i < op.out.sizes[0]; ++i) {
    host::StoreNumber(row, i, op.start + static_cast<double>(i) * op.step);
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Copy& op) {
  const DType from = op.in.dtype;
  const DType to = op.out.dtype;
  if (from == to) {
    CopySameType(op.in, op.out);
    return absl::OkStatus();
  }
  if (IsFloat(from) && IsFloat(to)) {
    const auto body = [](float* out, const float* in, const float*, const float*, std::int64_t count) {
      if (out != in) std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float));
    };
    Pointwise(op.out, op.in, op.in, op.in, body);
    return absl::OkStatus();
  }
  const Runs runs(op.out.sizes, {&op.out, &op.in});
  runs.ForEach([&](const Runs::Offsets& at) {
    const Row row = RunOf(op.out, runs, at, 0);
    const Row in = RunOf(op.in, runs, at, 1);
    for (std::int64_t i = 0; i < runs.length(); ++i) {
      if (IsFloat(from)) {
        host::StoreNumber(row, i, LoadNumber(in, i));
      } else {
        host::StoreInteger(row, i, LoadInteger(in, i));
      }
    }
  });
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Unary& op) {
  VisitUnary(op.kind, [&]<UnaryKind kKind>() {
    Pointwise(op.out, op.in, op.in, op.in,
              [](float* out, const float* in, const float*, const float*, std::int64_t count) {
                for (std::int64_t i = 0; i < count; ++i) out[i] = UnaryOf<kKind>(in[i]);
              });
  });
  return absl::OkStatus();
}

absl::Status HostOps::Do(const UnaryBackward& op) {
  VisitUnary(op.kind, [&]<UnaryKind kKind>() {
    Pointwise(op.out, op.grad, op.saved, op.grad,
              [](float* out, const float* grad, const float* saved, const float*, std::int64_t count) {
                for (std::int64_t i = 0; i < count; ++i) out[i] = grad[i] * SlopeOf<kKind>(saved[i]);
              });
  });
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Affine& op) {
  const float scale = static_cast<float>(op.scale);
  const float shift = static_cast<float>(op.shift);
  Pointwise(op.out, op.in, op.in, op.in,
            [=](float* out, const float* in, const float*, const float*, std::int64_t count) {
              for (std::int64_t i = 0; i < count; ++i) out[i] = in[i] * scale + shift;
            });
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Binary& op) {
  const float scale = static_cast<float>(op.scale);
  VisitBinary(op.kind, [&]<BinaryKind kKind>() {
    Pointwise(op.out, op.left, op.right, op.left,
              [=](float* out, const float* left, const float* right, const float*, std::int64_t count) {
                for (std::int64_t i = 0; i < count; ++i) out[i] = BinaryOf<kKind>(left[i], right[i], scale);
              });
  });
  return absl::OkStatus();
}

absl::Status HostOps::Do(const AddProduct& op) {
  const float value = static_cast<float>(op.value);
  if (op.is_quotient) {
    Pointwise(op.out, op.base, op.left, op.right,
              [=](float* out, const float* base, const float* left, const float* right, std::int64_t count) {
                for (std::int64_t i = 0; i < count; ++i) out[i] = base[i] + value * (left[i] / right[i]);
              });
  } else {
    Pointwise(op.out, op.base, op.left, op.right,
              [=](float* out, const float* base, const float* left, const float* right, std::int64_t count) {
                for (std::int64_t i = 0; i < count; ++i) out[i] = base[i] + value * (left[i] * right[i]);
              });
  }
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Compare& op) {
  const bool is_whole = !IsFloat(op.left.dtype) && !IsFloat(op.right.dtype);
  const Runs runs(op.out.sizes, {&op.out, &op.left, &op.right});
  runs.ForEach([&](const Runs::Offsets& at) {
    const Row out = RunOf(op.out, runs, at, 0);
    const Row left = RunOf(op.left, runs, at, 1);
    const Row right = RunOf(op.right, runs, at, 2);
    for (std::int64_t i = 0; i < runs.length(); ++i) {
      const bool is_so = is_whole ? CompareOf(op.kind, LoadInteger(left, i), LoadInteger(right, i))
                                  : CompareOf(op.kind, LoadNumber(left, i), LoadNumber(right, i));
      static_cast<std::uint8_t*>(out.data)[i * out.stride] = is_so;
    }
  });
  return absl::OkStatus();
}

absl::Status HostOps::Do(const Where& op) {
  const Runs runs(op.out.sizes, {&op.out, &op.mask, &op.yes, &op.no});
  const std::size_t bytes = static_cast<std::size_t>(SizeOf(op.out.dtype));
  runs.ForEach([&](const Runs::Offsets& at) {
    const std::uint8_t* mask = static_cast<const std::uint8_t*>(op.mask.data) + at[1];
    for (std::int64_t i = 0; i < runs.length(); ++i) {
      const bool is_yes = mask[i * runs.stride(1)] != 0;
      const Row from = is_yes ? RowAt(op.yes, at[2] + i * runs.stride(2)) : RowAt(op.no, at[3] + i * runs.stride(3));
      std::memmove(RowAt(op.out, at[0] + i * runs.stride(0)).data, from.data, bytes);
    }
  });
  return absl::OkStatus();
}

absl::Status HostOps::Do(const MaskedFill& op) {
  const Constant value(op.out.dtype, op.value);
  return Do(Where{.mask = op.mask, .yes = value.view(), .no = op.in, .out = op.out});
}

// Reductions, and ops along an index, on the host.

namespace {

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
