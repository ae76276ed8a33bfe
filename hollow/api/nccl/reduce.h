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
#ifndef ASHLAR_HOLLOW_API_NCCL_REDUCE_H_
#define ASHLAR_HOLLOW_API_NCCL_REDUCE_H_

#include <climits>
#include <cstddef>
#include <cstdint>

namespace ashlar::hollow {

// The types and numbers of NCCL's interface that a hollow device answers.
//
// Source: nccl.h of NCCL 2.30.7 (nvidia-nccl-cu13 on PyPI). Older releases have the same numbers, and a shorter
// ncclConfig_t of the same beginning, which tells its own size.
enum class NcclResult : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,
};

enum class NcclType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,
  kFloat8e5m2 = 11,
};
inline constexpr int kNcclTypes = 12;

enum class NcclOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };
inline constexpr int kNcclOps = 5;  // those from here on a program made, by ncclRedOpCreatePreMulSum

inline constexpr int kNcclUndefined = INT_MIN;         // NCCL_CONFIG_UNDEF_INT
inline constexpr int kNcclNoColor = -1;                // NCCL_SPLIT_NOCOLOR
inline constexpr unsigned kNcclMagic = 0xcafebeef;     // NCCL_API_MAGIC
inline constexpr unsigned kNcclSimMagic = 0x74685283;  // in NCCL_SIM_INFO_INITIALIZER
inline constexpr int kNcclShrinkAbort = 1;             // NCCL_SHRINK_ABORT
inline constexpr int kNcclScalarDevice = 0;            // ncclScalarDevice

struct NcclUniqueId {
  char bytes[128];  // NCCL_UNIQUE_ID_BYTES
};

// The beginning of ncclConfig_t, as far as it is read here. NCCL 2.14 has it up to `blocking`.
struct NcclConfig {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

struct NcclSimInfo {
  std::size_t size;
  unsigned magic;
  unsigned version;
  float estimated_time;
};

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

#endif  // ASHLAR_HOLLOW_API_NCCL_REDUCE_H_
