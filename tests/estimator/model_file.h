// The model descriptions that the tests of estimate read: tests/estimator/configs, written from the published values.
#ifndef ASHLAR_TESTS_ESTIMATOR_MODEL_FILE_H_
#define ASHLAR_TESTS_ESTIMATOR_MODEL_FILE_H_

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "estimator/estimate.h"
#include "estimator/model.h"
#include "gtest/gtest.h"

namespace ashlar::estimate {

inline std::string ModelText(const std::string& name) {
  std::ifstream file(ASHLAR_SOURCE_DIR "/tests/estimator/configs/" + name + ".json", std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline Model ModelOf(const std::string& name, const std::string& architecture = "") {
  absl::StatusOr<Model> model = ReadModel(ModelText(name), {architecture});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : Model();
}

// A BERT classifier with four heads.
inline Model SmallBert(int layers, int hidden, int vocabulary) {
  absl::StatusOr<Model> model =
      ReadModel(absl::StrCat(R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"],)",
                             R"("num_attention_heads": 4, "num_hidden_layers": )", layers, R"(, "hidden_size": )",
                             hidden, R"(, "intermediate_size": )", 4 * hidden, R"(, "vocab_size": )", vocabulary, "}"),
                {});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : Model();
}

inline Estimate MustEstimate(Model model, const EstimateOptions& options) {
  absl::StatusOr<Estimate> estimate = EstimateMemory(std::move(model), options);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.ok() ? *std::move(estimate) : Estimate();
}

}  // namespace ashlar::estimate

#endif  // ASHLAR_TESTS_ESTIMATOR_MODEL_FILE_H_
