// Reads the settings of a process from its environment: ASHLAR_CONF, and PyTorch's variable where that is asked for.
//
//   ASHLAR_CONF="compat:torch-2.6,max_split_size_mb:128,search_after_sync:True"
//   ASHLAR_USE_PYTORCH_CONF=1     read PYTORCH_CUDA_ALLOC_CONF too (else PYTORCH_ALLOC_CONF), by PyTorch's rules;
//                                 where both name a key, ASHLAR_CONF wins
//
//   absl::StatusOr<policy::Options> options = OptionsFromEnvironment();
//   if (!options.ok()) std::cerr << options.status().message();  // "ASHLAR_CONF: 'max_split_mb' is no setting of ..."
//
// docs/library/settings.md has every key. Nothing set is every default. Errors: kInvalidArgument, which names the
// variable, the key and the value. Threads: as getenv, so not while another thread changes the environment.
#ifndef ASHLAR_ALLOCATOR_CORE_SETTINGS_H_
#define ASHLAR_ALLOCATOR_CORE_SETTINGS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/policy/options.h"

namespace ashlar::core {

// The value of a variable; nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

Environment ProcessEnvironment();

absl::StatusOr<policy::Options> OptionsFromEnvironment(const Environment& environment = ProcessEnvironment());

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_SETTINGS_H_
