// Makes the parameters of PyTorch's modules in the order in which PyTorch lists them.
//
//   ParameterList list(model);
//   list.set_prefix("bert.");
//   list.Linear("pooler.dense", 768, 768);   // bert.pooler.dense.weight (768, 768), bert.pooler.dense.bias (768)
#ifndef ASHLAR_ANALYZER_ESTIMATE_FAMILIES_PARAMETER_LIST_H_
#define ASHLAR_ANALYZER_ESTIMATE_FAMILIES_PARAMETER_LIST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/estimate/model.h"

namespace ashlar::estimate {

class ParameterList {
 public:
  explicit ParameterList(Model& model) : model_(model) {}

  // Names given from now on begin with it.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  void Add(absl::string_view name, std::vector<std::int64_t> sizes) {
    model_.parameters.push_back({absl::StrCat(prefix_, name), std::move(sizes)});
  }
  void Linear(absl::string_view name, std::int64_t in, std::int64_t out, bool has_bias = true) {
    Add(absl::StrCat(name, ".weight"), {out, in});
    if (has_bias) Add(absl::StrCat(name, ".bias"), {out});
  }
  // transformers' Conv1D: a linear layer with its weight the other way round.
  void Conv1D(absl::string_view name, std::int64_t in, std::int64_t out) {
    Add(absl::StrCat(name, ".weight"), {in, out});
    Add(absl::StrCat(name, ".bias"), {out});
  }
  void LayerNorm(absl::string_view name, std::int64_t width) {
    Add(absl::StrCat(name, ".weight"), {width});
    Add(absl::StrCat(name, ".bias"), {width});
  }
  void RmsNorm(absl::string_view name, std::int64_t width) { Add(absl::StrCat(name, ".weight"), {width}); }
  void Embedding(absl::string_view name, std::int64_t rows, std::int64_t width) {
    Add(absl::StrCat(name, ".weight"), {rows, width});
  }
  // `of` is a whole name, without the prefix.
  void Tie(absl::string_view name, std::string of) {
    model_.tied.push_back({absl::StrCat(prefix_, name), std::move(of)});
  }

 private:
  Model& model_;
  std::string prefix_;
};

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_FAMILIES_PARAMETER_LIST_H_
