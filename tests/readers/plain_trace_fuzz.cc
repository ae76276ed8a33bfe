// Any bytes as a plain request trace: read, or refused with a text that says where.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "allocator/base/check.h"
#include "analyzer/readers/plain_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = ashlar::readers::ParsePlainTrace(absl::string_view(reinterpret_cast<const char*>(data), size));
  ASHLAR_CHECK(trace.ok() || trace.status().message().find(':') != absl::string_view::npos);
  return 0;
}
