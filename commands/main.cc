// The program ashlar. Exit codes: 0 fine, 1 a check failed, 2 usage, 3 unreadable input; of the commands that start a
// program, that program's own.
#include "commands/commands.h"
#include "console/command_line.h"
#include "console/given_command.h"
#include "console/memory_end.h"
#include "console/terminal.h"
#include "launcher/launcher.h"

int main(int argc, char** argv) {
  using namespace ashlar::cli;  // NOLINT(google-build-using-namespace): each command is named once below
  EndWhereMemoryEnds();
  EndWhereInputEnds();
  GoOnWhereFilesEnd();
  FollowTerminal();
  const LaunchLine launch = SplitAtProgram(argc, argv);
  CommandLine line("ashlar", "Explains GPU memory: replays allocation traces through a caching allocator's own code.",
                   ASHLAR_VERSION);
  AddExplain(line);
  AddReport(line);
  AddReplay(line);
  AddCheck(line);
  AddDiff(line);
  AddBound(line);
  AddPlan(line);
  AddSweep(line);
  AddTune(line);
  AddFleet(line);
  AddConvert(line);
  AddEstimate(line);
  AddRun(line);
  AddDryRun(line, launch.program);
  AddFit(line, launch.program);
  AddRecord(line, launch.program);
  AddRunUnder(line, launch.program);
  AddWatch(line);
  KeepCommand(launch.argc, argv, launch.program);
  return line.Run(launch.argc, argv);
}
