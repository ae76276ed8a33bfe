#include "analyzer/readers/rmm/rmm_log_writer.h"

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace ashlar::readers {
namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;
constexpr std::int64_t kMicrosPerDay = 24 * 60 * 60 * kMicrosPerSecond;

absl::string_view NameOf(RmmAction action) {
  switch (action) {
    case RmmAction::kAllocate:
      return "allocate";
    case RmmAction::kFree:
      return "free";
    case RmmAction::kAllocateFailure:
      return "allocate failure";
  }
  return "";
}

// As printf's %p.
std::string PointerText(std::uint64_t address) { return address == 0 ? "(nil)" : absl::StrFormat("0x%x", address); }

// As a C++ stream prints a pointer.
std::string StreamText(std::uint64_t handle) { return handle == 0 ? "0" : absl::StrFormat("0x%x", handle); }

}  // namespace

RmmLogWriter::RmmLogWriter(ByteSink& out) : out_(out) { out_.Append("Thread,Time,Action,Pointer,Size,Stream\n"); }

void RmmLogWriter::Write(const RmmCall& call) {
  const std::int64_t of_day = ((call.time_us % kMicrosPerDay) + kMicrosPerDay) % kMicrosPerDay;
  const std::int64_t seconds = of_day / kMicrosPerSecond;
  out_.Append(absl::StrFormat("1,%02d:%02d:%02d.%06d,%s,%s,%d,%s\n", seconds / 3600, seconds / 60 % 60, seconds % 60,
                              of_day % kMicrosPerSecond, NameOf(call.action), PointerText(call.address), call.bytes,
                              StreamText(Handle(call.stream))));
}

}  // namespace ashlar::readers
