// Model files: Hugging Face's config.json, or a built-in name.
#ifndef ASHLAR_ESTIMATOR_WORKLOADS_MODEL_CONFIG_H_
#define ASHLAR_ESTIMATOR_WORKLOADS_MODEL_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "estimator/models/bert.h"
#include "estimator/models/gpt.h"

namespace ashlar::kernels {

// "bert-base", "bert-large", "tiny" (2 layers, 64 wide), or the path of a config.json. Errors name the file, the key
// and what it takes.
absl::StatusOr<BertConfig> ReadBertConfig(const std::string& name_or_path);
// "gpt2", "gpt2-medium", "tiny", or a path.
absl::StatusOr<Gpt2Config> ReadGpt2Config(const std::string& name_or_path);

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_WORKLOADS_MODEL_CONFIG_H_
