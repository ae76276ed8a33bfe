#include "ashlar/options.h"

#include "allocator/core/settings.h"
#include "allocator/policy/options.h"

namespace ashlar {

absl::StatusOr<Options> Options::Parse(absl::string_view conf, Compat compat, Keys keys) {
  return policy::ParseConf(conf, compat, keys);
}

absl::StatusOr<Options> Options::FromEnvironment() { return core::OptionsFromEnvironment(); }

}  // namespace ashlar
