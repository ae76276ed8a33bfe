#include "kernels/workloads/flags.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"

namespace ashlar::kernels {

Flags::Flags(absl::Span<const FlagSpec> specs) {
  for (const FlagSpec& spec : specs) values_.emplace(spec.name, spec.value);
}

void Flags::Set(absl::string_view name, std::string value) {
  const auto it = values_.find(std::string(name));
  ASHLAR_CHECK(it != values_.end());
  it->second = std::move(value);
}

const std::string& Flags::Text(absl::string_view name) const {
  const auto it = values_.find(std::string(name));
  ASHLAR_CHECK(it != values_.end());
  return it->second;
}

std::int64_t Flags::Int(absl::string_view name, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  if (absl::SimpleAtoi(Text(name), &value) && value >= low && value <= high) return value;
  Fail(absl::InvalidArgumentError(
      absl::StrCat("--", name, " '", Text(name), "' is not a whole number from ", low, " to ", high)));
  return low;
}

double Flags::Real(absl::string_view name, double low, double high) {
  double value = 0;
  if (absl::SimpleAtod(Text(name), &value) && value >= low && value <= high) return value;
  Fail(absl::InvalidArgumentError(
      absl::StrCat("--", name, " '", Text(name), "' is not a number from ", low, " to ", high)));
  return low;
}

bool Flags::Bool(absl::string_view name) {
  bool value = false;
  if (absl::SimpleAtob(Text(name), &value)) return value;
  Fail(absl::InvalidArgumentError(absl::StrCat("--", name, " '", Text(name), "' is neither true nor false")));
  return false;
}

void Flags::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

}  // namespace ashlar::kernels
