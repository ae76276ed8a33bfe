// Any text gives a trace or an error with a place, and a trace's ids are dense.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/check.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/plain/plain_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  ashlar::formats::Sniff(text);
  const auto trace = ashlar::formats::ParsePlainTrace(text);
  if (!trace.ok()) {
    ASHLAR_CHECK(trace.status().message().substr(0, 6) == "trace ");
    return 0;
  }
  for (const ashlar::trace::Op& request : trace->requests) {
    ASHLAR_CHECK(request.id < trace->id_count || request.id == 0);
  }
  return 0;
}
