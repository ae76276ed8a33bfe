// Whether a PyTorch was built for a card: by the kernels that are in it, as torch.cuda.get_arch_list() names them.
//
//   HasKernelsFor({"sm_75", "sm_80", "compute_90"}, {8, 6});   // true: those of 8.0 run on 8.6
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_ARCHS_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_ARCHS_H_

#include <optional>
#include <string>
#include <vector>

#include "analyzer/gpus/gpu_table.h"

namespace ashlar::cli {

// nullopt: there is no name that is known.
std::optional<bool> HasKernelsFor(const std::vector<std::string>& archs, gpus::Capability card);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_ARCHS_H_
