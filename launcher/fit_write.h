// The launcher that `ashlar fit --write FILE` makes: a script of Python that runs the program with changes made from
// outside.
//
//   absl::StatusOr<PythonProgram> program = ReadPythonProgram({"python", "-u", "train.py", "--epochs", "3"});
//   WriteFile("fit.py", LauncherText(*program, {"half-batch"}));
#ifndef ASHLAR_LAUNCHER_FIT_WRITE_H_
#define ASHLAR_LAUNCHER_FIT_WRITE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ashlar::cli {

struct PythonProgram {
  std::vector<std::string> words;      // "train.py"; "-m" and a module
  std::vector<std::string> arguments;  // the program's own
};

// InvalidArgument where it is not `python SCRIPT ...` or `python -m MODULE ...`. The interpreter's own options are left
// out.
absl::StatusOr<PythonProgram> ReadPythonProgram(const std::vector<std::string>& command);

std::string LauncherText(const PythonProgram& program, const std::vector<std::string>& changes);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_FIT_WRITE_H_
