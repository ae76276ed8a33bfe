// The text of a thread's last failed call, and the numbers that Abseil's codes become.
#ifndef ASHLAR_ALLOCATOR_C_ERROR_H_
#define ASHLAR_ALLOCATOR_C_ERROR_H_

#include "absl/status/status.h"
#include "ashlar.h"

namespace ashlar::c {

// Keeps the text, and returns the number. Where no host memory is left for the text, it says that instead.
ashlar_status Fail(const absl::Status& status) noexcept;
// A struct whose size its caller did not set.
ashlar_status FailAtSize(const char* name) noexcept;

}  // namespace ashlar::c

#endif  // ASHLAR_ALLOCATOR_C_ERROR_H_
