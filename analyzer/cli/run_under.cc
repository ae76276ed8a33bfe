#include "analyzer/cli/run_under.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/launch_under.h"

namespace ashlar::cli {
namespace {

int RunUnderChecked(const UnderFlags& flags) {
  if (!flags.records && !flags.serves) {
    return Fail(kUsage, absl::InvalidArgumentError("run-under: give --record, --serve or both"));
  }
  if (flags.conf.has_value() && !flags.serves) {
    return Fail(kUsage, absl::InvalidArgumentError("run-under: --conf is of --serve, which is not given"));
  }
  if (flags.conf.has_value()) {
    const absl::StatusOr<policy::Options> options =
        policy::ParseConf(*flags.conf, policy::Compat::kTorch210, policy::Keys::kAshlar);
    if (!options.ok()) return Fail(kUsage, OfFlag("--conf", options.status()));
    if (options->borrow_across_streams) {
      return Fail(kUsage,
                  absl::InvalidArgumentError("run-under: --conf: borrow_across_streams is for programs that name "
                                             "the stream of each request: leave it out"));
    }
  }
  if (!flags.output.empty() && !flags.records) {
    return Fail(kUsage, absl::InvalidArgumentError("run-under: -o is of --record, which is not given"));
  }
  return RunUnder(flags);
}

}  // namespace

void AddRunUnder(CommandLine& line, std::vector<std::string> program) {
  Command app = line.AddCommand("run-under", "run a program on our allocator, unchanged: -- PROGRAM ARGS...");
  app.Example("ashlar run-under --serve -- ./simulate");
  auto flags = std::make_shared<UnderFlags>();
  flags->command = "run-under --serve";
  flags->program = std::move(program);
  app.Add("--serve", flags->serves, "cudaMalloc, cudaFree and their like are served from a cache");
  app.Add("--conf", flags->conf, "settings of the cache (docs/library/settings.md), instead of ASHLAR_CONF");
  app.Add("--record", flags->records, "keeps the history of what the program allocates, as ashlar record does");
  app.Add("-o,--output", flags->output,
          absl::StrCat("of --record: a file of one process, a folder of several (default ", kUsualHistory, ".ashlar)"))
      .NotEmpty();
  app.OnRun([flags] { return RunUnderChecked(*flags); });
}

}  // namespace ashlar::cli
