// Writes what a process leaves for `ashlar dry-run` when it ends: process-PID.json in the run folder.
#ifndef ASHLAR_HOLLOW_LAUNCH_REPORT_H_
#define ASHLAR_HOLLOW_LAUNCH_REPORT_H_

namespace ashlar::hollow {

// Writes the report, once, where this process used a device, and gives its bytes back to the others. Called at exit and
// before _exit; a process that a signal ends leaves none.
void EndProcess();

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_LAUNCH_REPORT_H_
