// The program ashlar. Exit codes: 0 fine, 1 a check failed, 2 usage, 3 unreadable input.
#include <cstdio>
#include <functional>

#include "CLI/CLI.hpp"
#include "analyzer/cli/command.h"
#include "analyzer/cli/explain.h"
#include "analyzer/cli/replay.h"

int main(int argc, char** argv) {
  CLI::App program("Explains GPU memory: replays allocation traces through a caching allocator's own code.", "ashlar");
  program.require_subcommand(1);
  program.set_version_flag("--version", ASHLAR_VERSION);
  std::function<int()> run;
  ashlar::cli::AddExplain(program, run);
  ashlar::cli::AddReplay(program, run);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "ashlar: %s; see ashlar --help\n", error.what());
    return ashlar::cli::kUsage;
  }
  return run();
}
