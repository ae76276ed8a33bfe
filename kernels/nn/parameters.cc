#include "kernels/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/base/check.h"
#include "allocator/base/rng.h"
#include "kernels/tensor/context.h"

namespace ashlar::kernels {
namespace {

void UploadFloats(const Tensor& tensor, absl::Span<const float> values) {
  ASHLAR_CHECK(tensor.dtype() == DType::kFloat32 && IsContiguous(tensor.layout()));
  tensor.context().CopyBytes(tensor.view().data, values.data(), values.size() * sizeof(float));
}

}  // namespace

void FillNormal(const Tensor& tensor, double mean, double deviation) {
  Context& context = tensor.context();
  if (!context.computes()) return;
  if (deviation == 0) return context.Do(ops::Fill{tensor.view(), mean});
  const ops::RandomKey key = context.Draw(tensor.elements());
  Rng rng(key.seed * 0x9E3779B97F4A7C15 + key.offset);
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for (float& value : values) {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(1 - rng.Unit()));
    value = static_cast<float>(mean + deviation * radius * std::cos(2 * std::numbers::pi * rng.Unit()));
  }
  UploadFloats(tensor, values);
}

void FillRotary(const Tensor& table, double theta) {
  if (!table.context().computes()) return;
  const std::int64_t length = table.size(1), half = table.size(2);
  std::vector<float> values(static_cast<std::size_t>(table.elements()));
  for (std::int64_t s = 0; s < length; ++s) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(s) * std::pow(theta, -static_cast<double>(i) / static_cast<double>(half));
      const auto at = static_cast<std::size_t>(s * half + i);
      values[at] = static_cast<float>(std::cos(angle));
      values[at + static_cast<std::size_t>(length * half)] = static_cast<float>(std::sin(angle));
    }
  }
  UploadFloats(table, values);
}

Tensor CountedPositions(Context& context, std::int64_t length) {
  Tensor out = Empty(context, {1, length}, DType::kInt64);
  if (context.computes()) context.Do(ops::Arange{Alias(out, {{length}, {1}}, 0).view(), 0, 1});
  return out;
}

void FillIds(const Tensor& tensor, absl::Span<const std::int64_t> values) {
  Context& context = tensor.context();
  if (!context.computes()) return;
  ASHLAR_CHECK(tensor.elements() == static_cast<std::int64_t>(values.size()));
  if (tensor.dtype() == DType::kInt64) {
    return context.CopyBytes(tensor.view().data, values.data(), values.size() * sizeof(std::int64_t));
  }
  ASHLAR_CHECK(tensor.dtype() == DType::kInt32);
  const std::vector<std::int32_t> narrow(values.begin(), values.end());
  context.CopyBytes(tensor.view().data, narrow.data(), narrow.size() * sizeof(std::int32_t));
}

namespace {

// * stands for any characters.
bool Matches(absl::string_view part, absl::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == absl::string_view::npos) return part == pattern;
  if (!absl::ConsumePrefix(&part, pattern.substr(0, star))) return false;
  const absl::string_view rest = pattern.substr(star + 1);
  for (std::size_t skipped = 0; skipped <= part.size(); ++skipped) {
    if (Matches(part.substr(skipped), rest)) return true;
  }
  return false;
}

bool IsNumber(absl::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == absl::string_view::npos;
}

}  // namespace

bool IsNamedBy(absl::string_view name, absl::string_view pattern) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.'), wanted = absl::StrSplit(pattern, '.');
  for (std::size_t begin = 0; begin + wanted.size() <= parts.size(); ++begin) {
    bool all = true;
    for (std::size_t i = 0; i < wanted.size() && all; ++i) all = Matches(parts[begin + i], wanted[i]);
    if (all) return true;
  }
  return false;
}

Parameters::Parameters(Context& context, ParameterOptions options) : context_(context), options_(std::move(options)) {}

Tensor Parameters::New(std::string name, Dims sizes, Init init) {
  Tensor tensor = Empty(context_, std::move(sizes), options_.dtype, Part::kWeights);
  if (context_.computes()) FillNormal(tensor, init.mean, init.deviation);
  tensor.set_requires_grad(!IsFrozen(name));
  all_.push_back({std::move(name), tensor});
  return tensor;
}

bool Parameters::IsFrozen(absl::string_view name) const {
  return std::any_of(options_.frozen.begin(), options_.frozen.end(),
                     [&](const std::string& pattern) { return IsNamedBy(name, pattern); });
}

bool Parameters::IsOnHost(absl::string_view name) const {
  return std::find(options_.on_host.begin(), options_.on_host.end(), name) != options_.on_host.end();
}

std::int64_t Parameters::count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : all_) count += parameter.tensor.elements();
  return count;
}

// What the parameters are in, in their order: two parts of the names, numbers as *.
std::string Parameters::Modules() const {
  std::vector<std::string> out;
  for (const Parameter& parameter : all_) {
    std::vector<std::string> parts = absl::StrSplit(parameter.name, '.');
    if (parts.size() > 1) parts.pop_back();
    parts.resize(std::min<std::size_t>(parts.size(), 2));
    for (std::string& part : parts) {
      if (IsNumber(part)) part = "*";
    }
    std::string module = absl::StrJoin(parts, ".");
    if (std::find(out.begin(), out.end(), module) == out.end()) out.push_back(std::move(module));
  }
  return absl::StrJoin(out, ", ");
}

absl::Status Parameters::CheckFrozen() const {
  for (const std::string& pattern : options_.frozen) {
    const auto is_named = [&](const Parameter& parameter) { return IsNamedBy(parameter.name, pattern); };
    if (std::none_of(all_.begin(), all_.end(), is_named)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", pattern, "' is in no parameter's name; the model has ", Modules()));
    }
  }
  const auto is_trained = [](const Parameter& parameter) { return parameter.tensor.requires_grad(); };
  if (!options_.frozen.empty() && std::none_of(all_.begin(), all_.end(), is_trained)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", absl::StrJoin(options_.frozen, ","), "' freezes every parameter: nothing is left to train"));
  }
  return absl::OkStatus();
}

void ZeroGradients(const Parameters& parameters) {
  Context& context = parameters.context();
  for (const Parameter& parameter : parameters.all()) {
    Tensor tensor = parameter.tensor;
    if (!context.framework().zero_grad_keeps_gradients) {
      tensor.set_grad({});
    } else if (const Tensor grad = tensor.grad(); grad.defined() && context.computes()) {
      context.Do(ops::Fill{grad.view(), 0});
    }
  }
}

}  // namespace ashlar::kernels
