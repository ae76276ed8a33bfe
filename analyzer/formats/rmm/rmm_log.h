// Logs of RMM's logging_resource_adaptor: CSV, a line for each call on a memory resource.
//
//   Thread,Time,Action,Pointer,Size,Stream
//   1234,14:05:02.123456,allocate,0x7f0a00000000,1048576,0x55e0c8a2b010
//   1234,14:05:02.123501,free,0x7f0a00000000,1048576,0x55e0c8a2b010
//   1234,14:05:02.124110,allocate failure,(nil),17179869184,0
//
// The log says what was asked for, not how the resource served it: it is read as requests. A stream is read as
// hexadecimal with or without 0x, as RMM prints it (RMM's own replay reads "0x55e0" as stream 0). A free is one of the
// block's own stream, whichever stream it names. Columns may stand in any order; unknown ones are skipped. A last line
// that was cut off is left out.
//
//   absl::StatusOr<trace::RequestTrace> requests = ReadRmmLog(bytes);
//   requests->source   "RMM log (1 failed request left out)"
//
// Pure functions, safe from any thread.
#ifndef ASHLAR_ANALYZER_FORMATS_RMM_RMM_LOG_H_
#define ASHLAR_ANALYZER_FORMATS_RMM_RMM_LOG_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/byte_sink.h"
#include "allocator/base/units.h"
#include "allocator/trace/request.h"
#include "analyzer/formats/read_limits.h"

namespace ashlar::formats {

// Whether the first line is such a header.
bool IsRmmLog(absl::string_view text);

// Errors (InvalidArgument) say line and column, what is wrong and the mend: "RMM log 3:20: ...".
absl::StatusOr<trace::RequestTrace> ReadRmmLog(absl::string_view text, const ReadLimits& limits = {});

// "2 failed requests": what the program asked for and did not get, which is left out of the requests. Empty: none, or
// no such log.
absl::string_view FailedInRmmLog(const trace::RequestTrace& trace);

// Writes lines as RMM's logging_resource_adaptor does, which ReadRmmLog (rmm_log.h) and RMM's own replay benchmark
// read.
//
//   RmmLogWriter log(out);
//   log.Write({.action = RmmAction::kAllocate, .address = 0x7f0a00000000, .bytes = 512, .stream = Stream{0}});
//
// A time is printed as the time of day in UTC; all calls are of thread 1. Not thread-safe.
enum class RmmAction : std::uint8_t { kAllocate, kFree, kAllocateFailure };

struct RmmCall {
  RmmAction action = RmmAction::kAllocate;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  Stream stream{};
  std::int64_t time_us = 0;  // since any midnight
};

class RmmLogWriter {
 public:
  // Writes the header.
  explicit RmmLogWriter(ByteSink& out);
  void Write(const RmmCall& call);

 private:
  ByteSink& out_;
};

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_RMM_RMM_LOG_H_
