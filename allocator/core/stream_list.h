// The streams that use a block besides its own: mostly one or two, which need no memory of their own. Plain value.
#ifndef ASHLAR_ALLOCATOR_CORE_STREAM_LIST_H_
#define ASHLAR_ALLOCATOR_CORE_STREAM_LIST_H_

#include "absl/container/inlined_vector.h"
#include "allocator/base/units.h"

namespace ashlar::core {

using StreamList = absl::InlinedVector<Stream, 2>;

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_STREAM_LIST_H_
