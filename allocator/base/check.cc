#include "allocator/base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace ashlar {

void StopAtMisuse(const std::string& line) {
  std::fprintf(stderr, "ashlar: %s\n", line.c_str());
  std::abort();
}

namespace internal {

void CheckFailed(const char* file, int line, const char* expression, const std::string& operands) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%s\n", file, line, expression, operands.empty() ? "" : ": ",
               operands.c_str());
  std::abort();
}

}  // namespace internal
}  // namespace ashlar
