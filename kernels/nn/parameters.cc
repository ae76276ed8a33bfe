#include "kernels/nn/parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/nn/fill.h"

namespace ashlar::kernels {
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
