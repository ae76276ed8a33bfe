// Checks operands of one op and keeps the first complaint: "softmax: out is float16[4, 8], and must have sizes [4,
// 16]".
#ifndef ASHLAR_KERNELS_OPS_OPERAND_H_
#define ASHLAR_KERNELS_OPS_OPERAND_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/ops/view.h"

namespace ashlar::ops {

class Operands {
 public:
  explicit Operands(const char* op) : op_(op) {}

  Operands& Any(absl::string_view name, const View& view);      // as many strides as sizes, at most kMostDims
  Operands& Float(absl::string_view name, const View& view);    // of a float dtype
  Operands& Float32(absl::string_view name, const View& view);  // of float32
  Operands& Index(absl::string_view name, const View& view);    // of int64 or int32
  Operands& Mask(absl::string_view name, const View& view);     // of bool or uint8
  Operands& SameType(absl::string_view name, const View& view, const View& as);
  Operands& Rank(absl::string_view name, const View& view, int least, int most);
  Operands& Sizes(absl::string_view name, const View& view, const Dims& sizes);
  Operands& Count(absl::string_view name, const View& view, std::int64_t elements);
  Operands& Dense(absl::string_view name, const View& view);     // contiguous
  Operands& UnitRows(absl::string_view name, const View& view);  // its last dim has stride 1
  Operands& Output(absl::string_view name, const View& view);    // no two elements share an address
  Operands& Broadcasts(absl::string_view name, const View& view, const Dims& sizes);
  // `text` says what must be: "p must be in [0, 1)".
  Operands& That(bool is_so, absl::string_view text);

  const absl::Status& status() const { return status_; }

 private:
  Operands& Complain(absl::string_view name, const View& view, absl::string_view must);

  const char* op_;
  absl::Status status_ = absl::OkStatus();
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_OPERAND_H_
