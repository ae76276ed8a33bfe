// The settings of a text of PYTORCH_CUDA_ALLOC_CONF's grammar, as they stand: conf_parser.cc reads them.
#ifndef ASHLAR_ALLOCATOR_POLICY_CONF_SPLIT_H_
#define ASHLAR_ALLOCATOR_POLICY_CONF_SPLIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::policy {

struct Setting {
  std::string key;
  std::string value;
};

// Splits at commas outside brackets, then at the first colon. Blanks are left out.
absl::StatusOr<std::vector<Setting>> SplitConf(absl::string_view conf);

// The text without the settings of this key; as given where there are none, or where it is no text of settings.
std::string WithoutKey(absl::string_view conf, absl::string_view key);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_CONF_SPLIT_H_
