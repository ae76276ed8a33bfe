// Makes an allocator behind a handle of the C interface. Threads: any; as getenv where `conf` is NULL.
#ifndef ASHLAR_ALLOCATOR_C_OPEN_H_
#define ASHLAR_ALLOCATOR_C_OPEN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "allocator/c/handle.h"
#include "ashlar.h"
#include "ashlar/options.h"

namespace ashlar::c {

// NULL: of the environment.
absl::StatusOr<Options> OptionsOf(const char* conf);
absl::StatusOr<std::unique_ptr<ashlar_allocator>> Open(const ashlar_open_options& wanted);

}  // namespace ashlar::c

#endif  // ASHLAR_ALLOCATOR_C_OPEN_H_
