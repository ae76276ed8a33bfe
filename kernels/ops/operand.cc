#include "kernels/ops/operand.h"

#include "absl/strings/str_cat.h"

namespace ashlar::ops {

Operands& Operands::Complain(absl::string_view name, const View& view, absl::string_view must) {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(op_, ": ", name, " is ", ToString(view), ", and must ", must));
  }
  return *this;
}

Operands& Operands::That(bool is_so, absl::string_view text) {
  if (!is_so && status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(op_, ": ", text));
  return *this;
}

Operands& Operands::Any(absl::string_view name, const View& view) {
  if (view.sizes.size() != view.strides.size()) {
    return That(false, absl::StrCat(name, " has ", view.sizes.size(), " sizes and ", view.strides.size(), " strides"));
  }
  if (view.rank() > kMostDims) return Complain(name, view, absl::StrCat("have at most ", kMostDims, " dims"));
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] < 0 || view.strides[i] < 0) return Complain(name, view, "have no negative size or stride");
  }
  return *this;
}

Operands& Operands::Float(absl::string_view name, const View& view) {
  if (!IsFloat(view.dtype)) return Complain(name, view, "be float32, float16 or bfloat16");
  return Any(name, view);
}

Operands& Operands::Float32(absl::string_view name, const View& view) {
  if (view.dtype != DType::kFloat32) return Complain(name, view, "be float32");
  return Any(name, view);
}

Operands& Operands::Index(absl::string_view name, const View& view) {
  if (!IsIndex(view.dtype)) return Complain(name, view, "be int64 or int32");
  return Any(name, view);
}

Operands& Operands::Mask(absl::string_view name, const View& view) {
  if (view.dtype != DType::kBool && view.dtype != DType::kUint8) return Complain(name, view, "be bool or uint8");
  return Any(name, view);
}

Operands& Operands::SameType(absl::string_view name, const View& view, const View& as) {
  return view.dtype == as.dtype ? *this : Complain(name, view, absl::StrCat("be ", NameOf(as.dtype)));
}

Operands& Operands::Rank(absl::string_view name, const View& view, int least, int most) {
  if (view.rank() >= least && view.rank() <= most) return *this;
  return Complain(
      name, view,
      least == most ? absl::StrCat("have ", least, " dims") : absl::StrCat("have ", least, " to ", most, " dims"));
}

Operands& Operands::Sizes(absl::string_view name, const View& view, const Dims& sizes) {
  return view.sizes == sizes ? *this : Complain(name, view, absl::StrCat("have sizes ", ToString(sizes)));
}

Operands& Operands::Count(absl::string_view name, const View& view, std::int64_t elements) {
  return ElementCount(view.sizes) == elements ? *this : Complain(name, view, absl::StrCat("have elements: ", elements));
}

Operands& Operands::Dense(absl::string_view name, const View& view) {
  return !status_.ok() || IsContiguous(view) ? *this : Complain(name, view, "be contiguous");
}

Operands& Operands::UnitRows(absl::string_view name, const View& view) {
  if (!status_.ok() || (view.rank() > 0 && (view.strides.back() == 1 || view.sizes.back() <= 1))) return *this;
  return Complain(name, view, "have a last dim of stride 1");
}

Operands& Operands::Output(absl::string_view name, const View& view) {
  return !status_.ok() || IsOneToOne(view) ? *this : Complain(name, view, "have no two elements at one address");
}

Operands& Operands::Broadcasts(absl::string_view name, const View& view, const Dims& sizes) {
  bool fits = view.sizes.size() <= sizes.size();
  const std::size_t lead = sizes.size() - view.sizes.size();
  for (std::size_t i = 0; fits && i < view.sizes.size(); ++i) {
    fits = view.sizes[i] == 1 || view.sizes[i] == sizes[lead + i];
  }
  return fits ? *this : Complain(name, view, absl::StrCat("broadcast to ", ToString(sizes)));
}

}  // namespace ashlar::ops
