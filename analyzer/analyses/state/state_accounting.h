// Accounts for the bytes of a timeline's state, by the allocator's own code (allocator/core/accounting.h).
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_STATE_ACCOUNTING_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_STATE_ACCOUNTING_H_

#include <cstdint>

#include "allocator/core/accounting.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::analyses {

core::Accounting AccountState(const timeline::State& state);

// The largest run of free bytes that a request on `stream` could be served from in its pool; 0 when there is none.
std::uint64_t LargestFreeBytes(const timeline::State& state, Stream stream, bool is_small_pool, PoolId pool);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_STATE_ACCOUNTING_H_
