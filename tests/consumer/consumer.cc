// A program of somebody else: it uses the installed headers and library, nothing of the source tree.
#include <cstdint>
#include <cstdio>

#include "allocator/base/units.h"

int main() {
  const auto bytes = ashlar::ParseBytes("1.5 GiB");
  if (!bytes.ok() || *bytes != std::uint64_t{3} << 29) return 1;
  std::printf("1.5 GiB is %s\n", ashlar::FormatBytes(*bytes).c_str());
  return 0;
}
