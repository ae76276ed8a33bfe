// Writes lines as RMM's logging_resource_adaptor does, which ReadRmmLog (rmm_log.h) and RMM's own replay benchmark
// read.
//
//   RmmLogWriter log(out);
//   log.Write({.action = RmmAction::kAllocate, .address = 0x7f0a00000000, .bytes = 512, .stream = Stream{0}});
//
// A time is printed as the time of day in UTC; all calls are of thread 1. Not thread-safe.
#ifndef ASHLAR_ANALYZER_READERS_RMM_RMM_LOG_WRITER_H_
#define ASHLAR_ANALYZER_READERS_RMM_RMM_LOG_WRITER_H_

#include <cstdint>

#include "allocator/base/byte_sink.h"
#include "allocator/base/units.h"

namespace ashlar::readers {

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

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_RMM_RMM_LOG_WRITER_H_
