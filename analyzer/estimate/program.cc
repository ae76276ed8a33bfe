#include "analyzer/estimate/program.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace ashlar::estimate {
namespace {

// `of` the description of the program, `none` where there is none.
template <typename T, typename Of>
T OfProgram(const Model& model, T none, const Of& of) {
  return std::visit(
      [&](const auto& config) -> T {
        if constexpr (std::is_same_v<std::decay_t<decltype(config)>, std::monostate>) {
          return std::move(none);
        } else {
          return of(config);
        }
      },
      model.program);
}

}  // namespace

std::string WhyNoProgram(const Model& model, const DryRunOptions& options) {
  const std::string what = model.architecture.empty() ? "a list of parameters" : model.architecture;
  return OfProgram(model,
                   absl::StrCat("no dry run for ", what, " yet: printed from parameters only, without activations"),
                   [&](const auto& config) { return WhyNoProgramOf(config, options); });
}

std::unique_ptr<Program> MakeProgram(kernels::Parameters& parameters, const Model& model,
                                     const DryRunOptions& options) {
  return OfProgram(model, std::unique_ptr<Program>(),
                   [&](const auto& config) { return MakeProgramOf(config, parameters, options); });
}

double WidestTensor(const Model& model, const DryRunOptions& options) {
  return OfProgram(model, 0.0, [&](const auto& config) { return WidestTensorOf(config, options); });
}

}  // namespace ashlar::estimate
