// Random programs over every setting: the product and the slow model of tests/allocator/policy must agree after each
// step, recorded or not. ASHLAR_TEST_PROGRAMS sets how many (the seeds are 0, 1, 2, ...), ASHLAR_TEST_FIRST_SEED the
// first, ASHLAR_TEST_CONF what all of them set besides, such as policy:ashlar.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "tests/allocator/core/program.h"

namespace ashlar::core {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(RandomProgramTest, ProductAndModelAgree) {
  const std::uint64_t count = FromEnvironment("ASHLAR_TEST_PROGRAMS", 5000);
  const std::uint64_t first = FromEnvironment("ASHLAR_TEST_FIRST_SEED", 0);
  const char* conf = std::getenv("ASHLAR_TEST_CONF");
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Program program = RandomProgram(seed);
    if (conf != nullptr) program.conf += (program.conf.empty() ? "" : ",") + std::string(conf);
    for (const bool is_recorded : {true, false}) {
      program.is_recorded = is_recorded;
      if (Difference(program).empty()) continue;
      const Program small = Shrink(program);
      FAIL() << "seed " << seed << ": " << Difference(small) << "\n"
             << ToTestCase(small, "Seed" + std::to_string(seed));
    }
  }
}

}  // namespace
}  // namespace ashlar::core
