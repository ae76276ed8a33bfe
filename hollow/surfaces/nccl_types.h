// The types and numbers of NCCL's interface that a hollow device answers.
//
// Source: nccl.h of NCCL 2.30.7 (nvidia-nccl-cu13 on PyPI). Older releases have the same numbers, and a shorter
// ncclConfig_t of the same beginning, which tells its own size.
#ifndef ASHLAR_HOLLOW_SURFACES_NCCL_TYPES_H_
#define ASHLAR_HOLLOW_SURFACES_NCCL_TYPES_H_

#include <climits>
#include <cstddef>
#include <cstdint>

namespace ashlar::hollow {

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

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_NCCL_TYPES_H_
