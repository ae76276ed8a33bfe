// Reads the description of a model: a Hugging Face config.json, or a model file of our own (docs/guide/estimate.md).
//
//   absl::StatusOr<Model> model = ReadModel(bytes, {});
//   model->count();   // 109,482,240
#ifndef ASHLAR_ANALYZER_ESTIMATE_MODEL_FILE_H_
#define ASHLAR_ANALYZER_ESTIMATE_MODEL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analyzer/estimate/model.h"

namespace ashlar::estimate {

struct ModelFileOptions {
  std::string architecture = {};  // in place of the file's
  ModelSwitches switches = {};    // changes to what the file says
};

// InvalidArgument, one line: line and column where the text is not JSON, else the key and what it should be; the known
// families where model_type is none of them.
absl::StatusOr<Model> ReadModel(absl::string_view bytes, const ModelFileOptions& options);

// The model with these switches in place of those it was described with. Errors name the flag.
absl::StatusOr<Model> SwitchedModel(const Model& model, const ModelSwitches& switches);

// A model of which only this is known. From 1 to 10^15.
absl::StatusOr<Model> ModelOfCount(std::int64_t parameters);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_MODEL_FILE_H_
