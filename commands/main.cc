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
  line.Under("Start here");
  AddExplain(line);
  AddDryRun(line, launch.program);
  AddFit(line, launch.program);
  AddRecord(line, launch.program);
  AddReport(line);
  line.Under("Ask");
  AddEstimate(line);
  AddSweep(line);
  AddDiff(line);
  AddCheck(line);
  AddFleet(line);
  AddBound(line);
  AddReplay(line);
  AddWatch(line);
  AddAttach(line);
  line.Under("Keep");
  AddConvert(line);
  line.Under("Read");
  AddDocuments(line);
  AddPage(line);
  AddMcp(line);
  line.Under("Ashlar's own allocator");
  AddRunUnder(line, launch.program);
  AddPlan(line);
  AddTune(line);
  AddRun(line);
  KeepCommand(launch.argc, argv, launch.program);
  return line.Run(launch.argc, argv);
}
