// Of glibc 2.36, for std::random_device.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value;
  if (getentropy(&value, sizeof value) != 0) std::abort();
  return value;
}
