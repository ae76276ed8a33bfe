// Reads from an ELF file how it wants to be started. Layout: elf(5), <elf.h>.
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_ELF_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_ELF_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::cli {

struct ElfFacts {
  bool is_64_bit = false;
  bool is_of_this_machine = false;
  bool has_interpreter = false;  // false: statically linked
  bool has_device_code = false;  // nvcc embeds it with the calls of a CUDA runtime
  bool has_own_runtime = false;  // CUDA's, linked statically
  std::vector<std::string> needed = {};
};

// nullopt where these are not the bytes of an ELF file. What lies outside of a cut file is left out.
std::optional<ElfFacts> ReadElf(absl::string_view bytes);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_ELF_H_
