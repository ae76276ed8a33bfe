// The model descriptions that the tests of estimate read: tests/estimate/models, written from the published values.
#ifndef ASHLAR_TESTS_ESTIMATE_MODEL_FILE_H_
#define ASHLAR_TESTS_ESTIMATE_MODEL_FILE_H_

#include <fstream>
#include <iterator>
#include <string>

#include "analyzer/estimate/model_file.h"
#include "gtest/gtest.h"

namespace ashlar::estimate {

inline std::string ModelText(const std::string& name) {
  std::ifstream file(ASHLAR_SOURCE_DIR "/tests/estimate/models/" + name + ".json", std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline Model ModelOf(const std::string& name, const std::string& architecture = "") {
  absl::StatusOr<Model> model = ReadModel(ModelText(name), {architecture});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : Model();
}

}  // namespace ashlar::estimate

#endif  // ASHLAR_TESTS_ESTIMATE_MODEL_FILE_H_
