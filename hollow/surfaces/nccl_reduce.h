// The arithmetic of NCCL's reductions, over bytes in memory: each operation over each type.
//
//   NcclCombine(NcclOp::kSum, NcclType::kBfloat16, total, next, count);   // total[i] = total[i] + next[i]
//
// Each step is rounded to the type, to nearest and even, as a GPU's own additions are; FP8 stays within its finite
// values. NCCL itself leaves the order of the ranks open; callers here combine in the order of ranks, so that all ranks
// get the same bits. Integers wrap. The greater of a number and a NaN is the number. Source: FuncSum, FuncProd,
// FuncMinMax, FuncPreMulSum, FuncSumPostDiv in src/device/reduce_kernel.h, hostToDevRedOp in src/enqueue.cc (an average
// of floats is a sum of values multiplied by 1/n, one of integers a sum divided by n). Thread rule: pure functions; no
// alignment is asked for.
#ifndef ASHLAR_HOLLOW_SURFACES_NCCL_REDUCE_H_
#define ASHLAR_HOLLOW_SURFACES_NCCL_REDUCE_H_

#include <cstddef>
#include <cstdint>

#include "hollow/surfaces/nccl_types.h"

namespace ashlar::hollow {

std::size_t NcclSizeOf(NcclType type);
const char* NcclNameOf(NcclType type);
bool NcclIsInteger(NcclType type);

// kAvg combines as kSum.
void NcclCombine(NcclOp op, NcclType type, void* total, const void* next, std::size_t count);
// values[i] *= the one value at `scalar`, of the same type.
void NcclMultiply(NcclType type, void* values, const void* scalar, std::size_t count);
// What each rank does to its values before an average over `ranks` of them, and all do to the sum.
void NcclBeforeAverage(NcclType type, void* values, std::size_t count, int ranks);
void NcclAfterAverage(NcclType type, void* values, std::size_t count, int ranks);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_NCCL_REDUCE_H_
