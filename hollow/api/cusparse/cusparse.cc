// cuSPARSE: the handle, the older descriptors, and counts that it answers to the host.
//
// Signatures: cusparse.h of CUDA 11.8, 12.4 and 13.0. Products and solvers are work for the device
// (names/cusparse.inc).
#include "hollow/api/cusparse/cusparse.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "hollow/api/real_library.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"

extern "C" int cudaFree(void* address);

namespace ashlar::hollow {
namespace {

constinit Objects<CusparseHandle> cusparse_handles(0xE0);

struct MatrixDescription {
  int type = 0;
  int fill_mode = 0;
  int diagonal_type = 0;
  int base = 0;
};
constinit Objects<MatrixDescription> matrix_descriptions(0xE1);

struct SolverInfo {
  bool alive = true;
};
constinit Objects<SolverInfo> solver_infos(0xE2);

constexpr int kCusparseVersion = 120'301;  // where the program brought none: cuSPARSE 12.3.1

const char* CusparseStatusName(int status) {
  switch (status) {
    case 0:
      return "CUSPARSE_STATUS_SUCCESS";
    case 1:
      return "CUSPARSE_STATUS_NOT_INITIALIZED";
    case 3:
      return "CUSPARSE_STATUS_INVALID_VALUE";
    case 10:
      return "CUSPARSE_STATUS_NOT_SUPPORTED";
    default:
      return "CUSPARSE_STATUS_UNKNOWN";
  }
}

int SetDescription(void* description, int MatrixDescription::*part, int value) {
  MatrixDescription* mine = matrix_descriptions.Find(description);
  if (mine == nullptr) return kCusparseInvalidValue;
  mine->*part = value;
  return 0;
}
int GetDescription(const void* description, int MatrixDescription::*part) {
  const MatrixDescription* mine = matrix_descriptions.Find(description);
  return mine == nullptr ? 0 : mine->*part;
}

// A count for the host, or for the device where the handle says so.
int CountFor(void* handle, std::int64_t most, int* count) {
  const CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  if (count == nullptr) return kCusparseInvalidValue;
  CountLaunch(mine->stream);
  if (mine->pointer_mode == 0) *count = static_cast<int>(MadeUpCount(most));
  return 0;
}

// No pivot is zero, which only a kernel could have told.
int NoZeroPivot(void* handle, void* info, int* position) {
  const CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  if (solver_infos.Find(info) == nullptr || position == nullptr) return kCusparseInvalidValue;
  if (mine->pointer_mode != 0) {
    CountLaunch(mine->stream);
    return 0;
  }
  ReadMadeUp(position, sizeof(*position));
  *position = -1;
  return 0;
}

}  // namespace

CusparseHandle* FindCusparse(const void* handle) { return cusparse_handles.Find(handle); }
int KnownCusparse(void* handle) { return FindCusparse(handle) == nullptr ? kCusparseNotInitialized : 0; }
int LaunchCusparse(void* handle) {
  const CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  CountLaunch(mine->stream);
  return 0;
}

std::int64_t MadeUpCount(std::int64_t most) {
  std::uint64_t count = 0;
  ReadMadeUp(&count, sizeof(count));
  return most <= 0 ? 0 : static_cast<std::int64_t>(count % (static_cast<std::uint64_t>(most) + 1));
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cusparseCreate(void** handle) {
  if (handle == nullptr) return kCusparseInvalidValue;
  if (cudaFree(nullptr) != 0) return kCusparseNotInitialized;  // it makes the device's context, as the library does
  *handle = cusparse_handles.Make();
  return 0;
}
ASHLAR_SURFACE int cusparseDestroy(void* handle) {
  return cusparse_handles.Destroy(handle) ? 0 : kCusparseNotInitialized;
}
ASHLAR_SURFACE int cusparseGetProperty(int type, int* value) {
  const bool known = RealProperty("libcusparse.so.", "cusparseGetProperty", kCusparseVersion, type, value);
  return known ? 0 : kCusparseInvalidValue;
}
ASHLAR_SURFACE int cusparseGetVersion(void* handle, int* version) {
  if (FindCusparse(handle) == nullptr) return kCusparseNotInitialized;
  if (version == nullptr) return kCusparseInvalidValue;
  int part[3] = {};
  for (int type = 0; type < 3; ++type) cusparseGetProperty(type, &part[type]);
  *version = part[0] * 1000 + part[1] * 100 + part[2];  // CUSPARSE_VERSION
  return 0;
}
ASHLAR_SURFACE const char* cusparseGetErrorName(int status) {
  return RealText("libcusparse.so.", "cusparseGetErrorName", status, CusparseStatusName(status));
}
ASHLAR_SURFACE const char* cusparseGetErrorString(int status) {
  return RealText("libcusparse.so.", "cusparseGetErrorString", status, CusparseStatusName(status));
}
ASHLAR_SURFACE int cusparseSetStream(void* handle, void* stream) {
  CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  mine->stream = stream;
  return 0;
}
ASHLAR_SURFACE int cusparseGetStream(void* handle, void** stream) {
  const CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  if (stream == nullptr) return kCusparseInvalidValue;
  *stream = mine->stream;
  return 0;
}
ASHLAR_SURFACE int cusparseSetPointerMode(void* handle, int mode) {
  CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  mine->pointer_mode = mode;
  return 0;
}
ASHLAR_SURFACE int cusparseGetPointerMode(void* handle, int* mode) {
  const CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  if (mode == nullptr) return kCusparseInvalidValue;
  *mode = mine->pointer_mode;
  return 0;
}

ASHLAR_IGNORED(cusparseLoggerSetCallback, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusparseLoggerSetFile, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusparseLoggerOpenFile, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusparseLoggerSetLevel, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusparseLoggerSetMask, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusparseLoggerForceDisable, "there is nothing to log: no line is ever written")

ASHLAR_SURFACE int cusparseCreateMatDescr(void** description) {
  if (description == nullptr) return kCusparseInvalidValue;
  *description = matrix_descriptions.Make();
  return 0;
}
ASHLAR_SURFACE int cusparseDestroyMatDescr(void* description) {
  return matrix_descriptions.Destroy(description) ? 0 : kCusparseInvalidValue;
}
ASHLAR_SURFACE int cusparseCopyMatDescr(void* to, const void* from) {
  MatrixDescription* mine = matrix_descriptions.Find(to);
  const MatrixDescription* other = matrix_descriptions.Find(from);
  if (mine == nullptr || other == nullptr) return kCusparseInvalidValue;
  *mine = *other;
  return 0;
}
#define ASHLAR_DESCRIPTION_PART(name, part)                              \
  ASHLAR_SURFACE int cusparseSet##name(void* description, int value) {   \
    return SetDescription(description, &MatrixDescription::part, value); \
  }                                                                      \
  ASHLAR_SURFACE int cusparseGet##name(const void* description) {        \
    return GetDescription(description, &MatrixDescription::part);        \
  }
ASHLAR_DESCRIPTION_PART(MatType, type)
ASHLAR_DESCRIPTION_PART(MatFillMode, fill_mode)
ASHLAR_DESCRIPTION_PART(MatDiagType, diagonal_type)
ASHLAR_DESCRIPTION_PART(MatIndexBase, base)

// What a solver keeps between its steps. The library keeps device memory of its own in some; none is counted.
#define ASHLAR_SOLVER_INFO(make, destroy)                                             \
  ASHLAR_SURFACE int make(void** info) {                                              \
    if (info == nullptr) return kCusparseInvalidValue;                                \
    *info = solver_infos.Make();                                                      \
    return 0;                                                                         \
  }                                                                                   \
  ASHLAR_SURFACE int destroy(void* info) {                                            \
    return info == nullptr || solver_infos.Destroy(info) ? 0 : kCusparseInvalidValue; \
  }
ASHLAR_SOLVER_INFO(cusparseCreateBsrsv2Info, cusparseDestroyBsrsv2Info)
ASHLAR_SOLVER_INFO(cusparseCreateBsrsm2Info, cusparseDestroyBsrsm2Info)
ASHLAR_SOLVER_INFO(cusparseCreateCsrsv2Info, cusparseDestroyCsrsv2Info)
ASHLAR_SOLVER_INFO(cusparseCreateCsrsm2Info, cusparseDestroyCsrsm2Info)
ASHLAR_SOLVER_INFO(cusparseCreateCsric02Info, cusparseDestroyCsric02Info)
ASHLAR_SOLVER_INFO(cusparseCreateBsric02Info, cusparseDestroyBsric02Info)
ASHLAR_SOLVER_INFO(cusparseCreateCsrilu02Info, cusparseDestroyCsrilu02Info)
ASHLAR_SOLVER_INFO(cusparseCreateBsrilu02Info, cusparseDestroyBsrilu02Info)
ASHLAR_SOLVER_INFO(cusparseCreateCsrgemm2Info, cusparseDestroyCsrgemm2Info)
ASHLAR_SOLVER_INFO(cusparseCreateCsru2csrInfo, cusparseDestroyCsru2csrInfo)
ASHLAR_SOLVER_INFO(cusparseSpSV_createDescr, cusparseSpSV_destroyDescr)
ASHLAR_SOLVER_INFO(cusparseSpSM_createDescr, cusparseSpSM_destroyDescr)
ASHLAR_SOLVER_INFO(cusparseSpGEMM_createDescr, cusparseSpGEMM_destroyDescr)

#define ASHLAR_ZERO_PIVOT(name) \
  ASHLAR_SURFACE int name(void* handle, void* info, int* position) { return NoZeroPivot(handle, info, position); }
ASHLAR_ZERO_PIVOT(cusparseXbsrsv2_zeroPivot)
ASHLAR_ZERO_PIVOT(cusparseXbsrsm2_zeroPivot)
ASHLAR_ZERO_PIVOT(cusparseXcsrsv2_zeroPivot)
ASHLAR_ZERO_PIVOT(cusparseXcsrsm2_zeroPivot)
ASHLAR_ZERO_PIVOT(cusparseXcsric02_zeroPivot)
ASHLAR_ZERO_PIVOT(cusparseXbsric02_zeroPivot)
ASHLAR_ZERO_PIVOT(cusparseXcsrilu02_zeroPivot)
ASHLAR_ZERO_PIVOT(cusparseXbsrilu02_zeroPivot)

// A sum of two matrices has at most the places of both.
ASHLAR_SURFACE int cusparseXcsrgeam2Nnz(void* handle, int, int, const void*, int a, const int*, const int*, const void*,
                                        int b, const int*, const int*, const void*, int*, int* count, void*) {
  return CountFor(handle, std::int64_t{a} + b, count);
}
