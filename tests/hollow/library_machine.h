// The machine below the shells of NVIDIA's libraries, for their tests: it does nothing and remembers what it was told.
#ifndef ASHLAR_TESTS_HOLLOW_LIBRARY_MACHINE_H_
#define ASHLAR_TESTS_HOLLOW_LIBRARY_MACHINE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hollow/process/settings.h"

namespace ashlar::hollow {

struct Remembered {
  std::vector<void*> launches;  // their streams
  std::vector<std::string> refused;
  std::vector<std::uint64_t> made_up;  // bytes
  std::vector<std::string> cudnn_plans;
  std::vector<std::optional<std::uint64_t>> cudnn_workspaces;  // of these plans
  std::vector<std::string> cudnn_silences;
  std::vector<std::size_t> allocated;  // bytes of cudaMalloc
  std::size_t freed = 0;
};
extern Remembered remembered;
extern Settings simple_machine;  // of two devices; the first has 5 MiB in use, by processes 101 (3 MiB) and 102

class LibrariesTest : public testing::Test {
 protected:
  void SetUp() override;
};

// Not an address: a stream is only passed on.
inline void* StreamOf(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

}  // namespace ashlar::hollow

#endif  // ASHLAR_TESTS_HOLLOW_LIBRARY_MACHINE_H_
