// An allocator over simulated memory, by the C interface.
#ifndef ASHLAR_TESTS_ALLOCATOR_API_C_C_API_FIXTURE_H_
#define ASHLAR_TESTS_ALLOCATOR_API_C_C_API_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "ashlar.h"

namespace ashlar::tests {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

inline ashlar_open_options Simulated(const char* conf = "", std::uint64_t capacity_bytes = 1024 * kMiB) {
  return {.struct_size = sizeof(ashlar_open_options),
          .conf = conf,
          .memory = ASHLAR_MEMORY_SIMULATED,
          .device = 0,
          .capacity_bytes = capacity_bytes};
}

// Closed at the end of the test, with what is still allocated.
class CApiTest : public testing::Test {
 protected:
  ~CApiTest() override { ashlar_close(allocator_); }

  void Open(const char* conf = "report_leaks:False") {
    const ashlar_open_options options = Simulated(conf);
    ASSERT_EQ(ashlar_open(&options, &allocator_), ASHLAR_OK) << ashlar_last_error();
  }
  void* Allocate(std::size_t bytes, std::uintptr_t stream = 0) {
    void* memory = nullptr;
    EXPECT_EQ(ashlar_allocate(allocator_, bytes, reinterpret_cast<void*>(stream), &memory), ASHLAR_OK)
        << ashlar_last_error();
    return memory;
  }
  ashlar_statistics Statistics() const {
    ashlar_statistics out{};
    out.struct_size = sizeof(out);
    EXPECT_EQ(ashlar_get_statistics(allocator_, &out), ASHLAR_OK);
    return out;
  }

  ashlar_allocator* allocator_ = nullptr;
};

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ALLOCATOR_API_C_C_API_FIXTURE_H_
