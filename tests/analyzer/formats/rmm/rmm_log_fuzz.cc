// Any text gives requests or an error with a place; ids are dense, each is allocated once and freed once at the most.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/check.h"
#include "analyzer/formats/rmm/rmm_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = ashlar::formats::ReadRmmLog(text);
  if (!trace.ok()) {
    ASHLAR_CHECK(trace.status().message().substr(0, 8) == "RMM log ");
    return 0;
  }
  std::vector<int> state(trace->id_count);  // 0 new, 1 live, 2 freed
  for (const ashlar::trace::Op& request : trace->requests) {
    ASHLAR_CHECK(request.id < trace->id_count);
    ASHLAR_CHECK(state[request.id] == (request.kind == ashlar::trace::OpKind::kAlloc ? 0 : 1));
    ++state[request.id];
  }
  return 0;
}
