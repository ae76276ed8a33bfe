// Checks of our own invariants. A failed check is a bug of ours, never bad input: it prints the site, the expression
// and both operands, and aborts. Bad input is an absl::Status; where a call has none, StopAtMisuse.
#ifndef ASHLAR_ALLOCATOR_BASE_CHECK_H_
#define ASHLAR_ALLOCATOR_BASE_CHECK_H_

#include <string>

namespace ashlar {

// A caller's mistake in a call that cannot answer with an error: prints the line, "ashlar: " before it, and aborts.
[[noreturn]] void StopAtMisuse(const std::string& line);

}  // namespace ashlar

namespace ashlar::internal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* expression, const std::string& operands);

}  // namespace ashlar::internal

#define ASHLAR_CHECK(condition)                                                       \
  do {                                                                                \
    if (!(condition)) [[unlikely]]                                                    \
      ::ashlar::internal::CheckFailed(__FILE__, __LINE__, #condition, std::string()); \
  } while (false)

#define ASHLAR_CHECK_OP(left, op, right)                                                                         \
  do {                                                                                                           \
    const auto ashlar_left = (left);                                                                             \
    const auto ashlar_right = (right);                                                                           \
    if (!(ashlar_left op ashlar_right)) [[unlikely]]                                                             \
      ::ashlar::internal::CheckFailed(__FILE__, __LINE__, #left " " #op " " #right,                              \
                                      std::to_string(ashlar_left) + " against " + std::to_string(ashlar_right)); \
  } while (false)

#define ASHLAR_CHECK_EQ(left, right) ASHLAR_CHECK_OP(left, ==, right)
#define ASHLAR_CHECK_LE(left, right) ASHLAR_CHECK_OP(left, <=, right)
#define ASHLAR_CHECK_GE(left, right) ASHLAR_CHECK_OP(left, >=, right)

#endif  // ASHLAR_ALLOCATOR_BASE_CHECK_H_
