// Keeps what a run left: one process's history as a file, of several, or where a folder is asked for, all files in it.
//
//   absl::StatusOr<std::string> kept = KeepResults(results, "run.pickle");   // "run.pickle"
//
// In a folder: history-rank0.pickle, oom-rank0-1.pickle, and of processes without a rank history-4242.pickle;
// of native programs history-4242.ashlar.
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_KEEP_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_KEEP_H_

#include <string>

#include "absl/status/statusor.h"
#include "analyzer/cli/launch_results.h"

namespace ashlar::cli {

// Where it now lies. NotFound where the run left no history; Unavailable, with the file, where it cannot be written.
// One process's file is its history to the end; where it has none, that up to its last out-of-memory error. A name that
// ends in / or is that of a folder asks for a folder.
// A native program's log is kept as a recording; as a snapshot where the name ends in .pickle or .pkl.
absl::StatusOr<std::string> KeepResults(const RunResults& results, const std::string& to);

// Of the file that a process's history is usually kept in: ".pickle", of native programs ".ashlar".
const char* EndingOf(const ProcessRun& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_KEEP_H_
