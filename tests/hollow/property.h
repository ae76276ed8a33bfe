// Programs of operations made at random, run on a book and on a model at once. One where they differ is made small and
// printed as C++ that pastes into the test's file.
//
//   std::string KnownBytesDifference(const Operations& program);   // the first difference in words; "" for none
//   CheckPrograms("KnownBytesTest", "KnownBytesDifference", KnownBytesDifference, {.kinds = 4, .operations = 200});
//
// What an operation means is the test's: `kind` counts from 0, `a` and `b` are numbers below the limits. An operation
// on what is not there is ignored, so that any part of a program is a program.
#ifndef ASHLAR_TESTS_HOLLOW_PROPERTY_H_
#define ASHLAR_TESTS_HOLLOW_PROPERTY_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "allocator/base/rng.h"

namespace ashlar::hollow::test {

struct Operation {
  int kind = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};
using Operations = std::vector<Operation>;
using DifferenceOf = std::function<std::string(const Operations&)>;

struct Programs {
  int kinds = 1;
  std::size_t operations = 100;
  std::uint64_t below_a = 64;
  std::uint64_t below_b = 64;
  std::uint64_t seeds = 200;
};

inline Operations RandomOperations(const Programs& programs, std::uint64_t seed) {
  Rng rng(seed);
  Operations out(programs.operations);
  for (Operation& one : out) {
    one.kind = static_cast<int>(rng.Below(static_cast<std::uint64_t>(programs.kinds)));
    one.a = rng.Below(programs.below_a);
    one.b = rng.Below(programs.below_b);
  }
  return out;
}

// A part of the program that still differs, no single operation of which can be left out.
inline Operations Shrunk(Operations program, const DifferenceOf& difference) {
  for (std::size_t part = program.size(); part > 0; part /= 2) {
    for (std::size_t at = 0; at + part <= program.size();) {
      Operations less = program;
      const auto begin = less.begin() + static_cast<std::ptrdiff_t>(at);
      less.erase(begin, begin + static_cast<std::ptrdiff_t>(part));
      if (difference(less).empty()) {
        ++at;
      } else {
        program = std::move(less);
      }
    }
  }
  return program;
}

inline std::string ToTestCase(const Operations& program, const std::string& suite, const std::string& function) {
  std::string out = "TEST(" + suite + ", Regression) {\n  EXPECT_EQ(" + function + "({";
  for (const Operation& one : program) {
    out += "{" + std::to_string(one.kind) + ", " + std::to_string(one.a) + ", " + std::to_string(one.b) + "}, ";
  }
  if (!program.empty()) out.resize(out.size() - 2);
  return out + "}), \"\");\n}\n";
}

inline void CheckPrograms(const std::string& suite, const std::string& function, const DifferenceOf& difference,
                          const Programs& programs) {
  for (std::uint64_t seed = 1; seed <= programs.seeds; ++seed) {
    const Operations program = RandomOperations(programs, seed);
    if (difference(program).empty()) continue;
    const Operations small = Shrunk(program, difference);
    FAIL() << "seed " << seed << ": " << difference(small) << "\n" << ToTestCase(small, suite, function);
  }
}

}  // namespace ashlar::hollow::test

#endif  // ASHLAR_TESTS_HOLLOW_PROPERTY_H_
