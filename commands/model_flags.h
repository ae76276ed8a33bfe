// The flags of `ashlar estimate` that change the model: fewer rows, fewer layers, ties, frozen parts, the host.
#ifndef ASHLAR_COMMANDS_MODEL_FLAGS_H_
#define ASHLAR_COMMANDS_MODEL_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "console/command_line.h"
#include "estimator/model.h"

namespace ashlar::cli {

struct ModelFlags {
  std::optional<std::int64_t> vocabulary, layers, width;
  bool ties = false, unties = false, shares = false, separates = false;
  std::string frozen;  // with commas
  bool has_host_embeddings = false;
};

// The flags outlive the run of the command.
void AddModelFlags(Command& app, ModelFlags& flags);
estimate::ModelSwitches SwitchesOf(const ModelFlags& flags);

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_MODEL_FLAGS_H_
