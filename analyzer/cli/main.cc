// The program ashlar. Exit codes: 0 fine, 1 a check failed, 2 usage, 3 unreadable input; of the commands that start a
// program, that program's own.
#include "analyzer/cli/bound.h"
#include "analyzer/cli/check.h"
#include "analyzer/cli/command_line.h"
#include "analyzer/cli/convert.h"
#include "analyzer/cli/diff.h"
#include "analyzer/cli/dry_run.h"
#include "analyzer/cli/estimate.h"
#include "analyzer/cli/explain.h"
#include "analyzer/cli/fleet.h"
#include "analyzer/cli/given_command.h"
#include "analyzer/cli/launch_line.h"
#include "analyzer/cli/memory_end.h"
#include "analyzer/cli/plan.h"
#include "analyzer/cli/record.h"
#include "analyzer/cli/replay.h"
#include "analyzer/cli/report.h"
#include "analyzer/cli/run.h"
#include "analyzer/cli/run_under.h"
#include "analyzer/cli/sweep.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/cli/tune.h"
#include "analyzer/cli/watch.h"

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
  AddRecord(line, launch.program);
  AddRunUnder(line, launch.program);
  AddWatch(line);
  KeepCommand(launch.argc, argv, launch.program);
  return line.Run(launch.argc, argv);
}
