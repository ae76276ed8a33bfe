#include "analyzer/cli/record.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/launch_under.h"

namespace ashlar::cli {

void AddRecord(CommandLine& line, std::vector<std::string> program) {
  Command app = line.AddCommand("record", "run a program and keep its memory history: -- PROGRAM ARGS...");
  app.Example("ashlar record -o run.pickle -- python train.py");
  auto flags = std::make_shared<UnderFlags>();
  flags->command = "record";
  flags->program = std::move(program);
  flags->records = true;
  app.Add("--history", flags->history, "events that PyTorch records at most (default 1,000,000)");
  app.Add("-o,--output", flags->output,
          absl::StrCat("a file of one process, a folder of several (default ", kUsualHistory, ".pickle of PyTorch, ",
                       kUsualHistory, ".ashlar of a native program)"))
      .NotEmpty();
  app.OnRun([flags] { return RunUnder(*flags); });
}

}  // namespace ashlar::cli
