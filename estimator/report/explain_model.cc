#include "estimator/report/explain_model.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "estimator/estimate.h"

namespace ashlar::estimate {
namespace {

struct Match {
  const ModelParameter* parameter;
  std::int64_t element_bytes;
};

std::vector<Match> ParametersOfSize(const Model& model, const analyses::ByteSpan& request) {
  std::vector<Match> out;
  for (const std::int64_t element_bytes : {4, 2}) {
    for (const ModelParameter& parameter : model.parameters) {
      const std::int64_t bytes = element_bytes * parameter.count();
      if (request.low_bytes <= bytes && bytes <= request.high_bytes) out.push_back({&parameter, element_bytes});
    }
  }
  return out;
}

std::string SizesText(const ModelParameter& parameter) {
  return absl::StrJoin(parameter.sizes, " x ", [](std::string* out, std::int64_t size) {
    out->append(FormatCount(static_cast<std::uint64_t>(size)));
  });
}

// What stands out about it, where it does.
std::string Remark(const Model& model, const ModelParameter& parameter) {
  for (const Outlier& outlier : FindOutliers(model)) {
    if (outlier.name != parameter.name) continue;
    std::string out =
        absl::StrFormat("; it holds %.1f %% of all parameters",
                        100 * static_cast<double>(outlier.parameters) / static_cast<double>(model.count()));
    if (outlier.column.has_value()) {
      absl::StrAppend(&out, ", ", FormatCount(static_cast<std::uint64_t>(outlier.column->categories)),
                      " of its rows are ", outlier.column->name);
    }
    return out;
  }
  return "";
}

}  // namespace

std::optional<std::string> ModelEvidence(const Model& model, const answers::Failure& failure) {
  if (!failure.request_interval.has_value()) return std::nullopt;
  const std::vector<Match> matches = ParametersOfSize(model, *failure.request_interval);
  if (matches.empty()) {
    return absl::StrCat("no parameter of ", model.architecture.empty() ? "the model" : model.architecture,
                        " has the size of the request: it was an activation or a temporary of one");
  }
  const Match& match = matches.front();
  std::string text = absl::StrCat("the request is as big as ", match.parameter->name, " (", SizesText(*match.parameter),
                                  ", ", match.element_bytes, " bytes an element)");
  if (matches.size() > 1) absl::StrAppend(&text, " and ", matches.size() - 1, " more parameters");
  return absl::StrCat(text, ": itself, its gradient, an optimizer state, or a temporary of its update",
                      Remark(model, *match.parameter));
}

}  // namespace ashlar::estimate
