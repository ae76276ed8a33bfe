// Writes the state in which a request failed, where the environment asks for it:
//
//   $ ASHLAR_OOM_DUMP=/tmp/dumps ./program
//   ...
//   state written: ashlar explain /tmp/dumps/ashlar_oom_4711_0.ashlar           the last line of the error
//
// The file is a recording (docs/library/recorder.md): the segments with every block, the settings, the request, and,
// where the allocator's sink keeps the last events (a Recorder's ring), those. A file is never overwritten; a process
// writes at most kMostOomDumps into a folder. What cannot be written is one line on stderr, and the request's own error
// is unchanged.
//
// No device is called. Threads: any; the allocator that failed stands still meanwhile, so that state and events are of
// one moment.
#ifndef ASHLAR_ALLOCATOR_CORE_OOM_DUMP_H_
#define ASHLAR_ALLOCATOR_CORE_OOM_DUMP_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/core/oom_report.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {

inline constexpr int kMostOomDumps = 8;  // a program that fails in a loop does not fill the disk
inline constexpr char kOomDumpVariable[] = "ASHLAR_OOM_DUMP";

// A recording of a state and of the one request.
absl::Status WriteFailedState(trace::Snapshot state, const FailedAllocation& failed, const std::string& path);

// Calls `write` with the path of a new, empty file in the folder that the environment names. The line that tells of it,
// for the error; nullopt where nothing was asked for, or where this process has written its share.
std::optional<std::string> DumpOom(absl::FunctionRef<absl::Status(const std::string& path)> write);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_OOM_DUMP_H_
