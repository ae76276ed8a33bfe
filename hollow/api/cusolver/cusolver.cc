// cuSOLVER, dense: handles, parameters, and what its iterative solvers tell the host. Factorisations and solvers are
// work for the device, the sizes of their workspaces are kWorkspaceBytes (names/cusolver.inc). The sparse and the
// refactorisation interfaces, and that of several devices, are not supported.
//
// Signatures: cusolverDn.h and cusolver_common.h of CUDA 11.8, 12.4 and 13.0.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "hollow/api/objects.h"
#include "hollow/api/real_library.h"
#include "hollow/api/surface.h"

extern "C" int cudaFree(void* address);

namespace ashlar::hollow {
namespace {

constexpr int kCusolverNotInitialized = 1;  // CUSOLVER_STATUS_NOT_INITIALIZED
constexpr int kCusolverVersion = 110'600;   // where the program brought none: cuSOLVER 11.6.0

struct CusolverHandle {
  void* stream = nullptr;
  int deterministic_mode = 1;  // CUSOLVER_DETERMINISTIC_RESULTS
  int math_mode = 0;
  int emulation_strategy = 0;
};
constinit Objects<CusolverHandle> cusolver_handles(0xE8);

struct CusolverParameters {
  bool alive = true;
};
constinit Objects<CusolverParameters> cusolver_parameters(0xE9);

struct JacobiInfo {  // of gesvdj and syevj
  double tolerance = 0;
  int most_sweeps = 100;
  int sorted = 1;
};
constinit Objects<JacobiInfo> jacobi_infos(0xEA);

template <class T>
int MakeCusolver(Objects<T>& objects, void** made) {
  if (made == nullptr) return kCusolverInvalidValue;
  *made = objects.Make();
  return 0;
}

template <class Value>
int SetOnSolver(void* handle, Value CusolverHandle::*part, Value value) {
  CusolverHandle* mine = cusolver_handles.Find(handle);
  if (mine == nullptr) return kCusolverNotInitialized;
  mine->*part = value;
  return 0;
}
template <class Value>
int GetFromSolver(void* handle, Value CusolverHandle::*part, Value* value) {
  const CusolverHandle* mine = cusolver_handles.Find(handle);
  if (mine == nullptr) return kCusolverNotInitialized;
  if (value == nullptr) return kCusolverInvalidValue;
  *value = mine->*part;
  return 0;
}
template <class Value>
int SetJacobi(void* info, Value JacobiInfo::*part, Value value) {
  JacobiInfo* mine = jacobi_infos.Find(info);
  if (mine == nullptr) return kCusolverInvalidValue;
  mine->*part = value;
  return 0;
}

// What the last run of a solver found: only a kernel could have.
template <class Value>
int FoundBySolver(void* handle, void* info, Value* value) {
  if (cusolver_handles.Find(handle) == nullptr) return kCusolverNotInitialized;
  if (jacobi_infos.Find(info) == nullptr || value == nullptr) return kCusolverInvalidValue;
  ReadMadeUp(value, sizeof(*value));
  return 0;
}

}  // namespace

int KnownCusolver(void* handle) { return cusolver_handles.Find(handle) == nullptr ? kCusolverNotInitialized : 0; }
int LaunchCusolver(void* handle) {
  const CusolverHandle* mine = cusolver_handles.Find(handle);
  if (mine == nullptr) return kCusolverNotInitialized;
  CountLaunch(mine->stream);
  return 0;
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cusolverDnCreate(void** handle) {
  if (handle == nullptr) return kCusolverInvalidValue;
  if (cudaFree(nullptr) != 0) return kCusolverNotInitialized;  // it makes the device's context, as the library does
  return MakeCusolver(cusolver_handles, handle);
}
ASHLAR_SURFACE int cusolverDnDestroy(void* handle) {
  return cusolver_handles.Destroy(handle) ? 0 : kCusolverNotInitialized;
}
ASHLAR_SURFACE int cusolverDnSetStream(void* handle, void* stream) {
  return SetOnSolver(handle, &CusolverHandle::stream, stream);
}
ASHLAR_SURFACE int cusolverDnGetStream(void* handle, void** stream) {
  return GetFromSolver(handle, &CusolverHandle::stream, stream);
}
ASHLAR_SURFACE int cusolverDnSetDeterministicMode(void* handle, int mode) {
  return SetOnSolver(handle, &CusolverHandle::deterministic_mode, mode);
}
ASHLAR_SURFACE int cusolverDnGetDeterministicMode(void* handle, int* mode) {
  return GetFromSolver(handle, &CusolverHandle::deterministic_mode, mode);
}
ASHLAR_SURFACE int cusolverDnSetMathMode(void* handle, int mode) {
  return SetOnSolver(handle, &CusolverHandle::math_mode, mode);
}
ASHLAR_SURFACE int cusolverDnGetMathMode(void* handle, int* mode) {
  return GetFromSolver(handle, &CusolverHandle::math_mode, mode);
}
ASHLAR_SURFACE int cusolverDnSetEmulationStrategy(void* handle, int strategy) {
  return SetOnSolver(handle, &CusolverHandle::emulation_strategy, strategy);
}
ASHLAR_SURFACE int cusolverDnGetEmulationStrategy(void* handle, int* strategy) {
  return GetFromSolver(handle, &CusolverHandle::emulation_strategy, strategy);
}

ASHLAR_SURFACE int cusolverGetProperty(int type, int* value) {
  const bool known = RealProperty("libcusolver.so.", "cusolverGetProperty", kCusolverVersion, type, value);
  return known ? 0 : kCusolverInvalidValue;
}
ASHLAR_SURFACE int cusolverGetVersion(int* version) {
  if (version == nullptr) return kCusolverInvalidValue;
  int part[3] = {};
  for (int type = 0; type < 3; ++type) cusolverGetProperty(type, &part[type]);
  *version = part[0] * 1000 + part[1] * 100 + part[2];  // CUSOLVER_VERSION
  return 0;
}

ASHLAR_SURFACE int cusolverDnCreateParams(void** parameters) { return MakeCusolver(cusolver_parameters, parameters); }
ASHLAR_SURFACE int cusolverDnDestroyParams(void* parameters) {
  return cusolver_parameters.Destroy(parameters) ? 0 : kCusolverInvalidValue;
}
ASHLAR_SURFACE int cusolverDnSetAdvOptions(void* parameters, int, int) {
  return cusolver_parameters.Find(parameters) != nullptr ? 0 : kCusolverInvalidValue;
}

// The two solvers by Jacobi's method, for singular values and for eigenvalues.
#define ASHLAR_JACOBI(Name, name)                                                                           \
  ASHLAR_SURFACE int cusolverDnCreate##Name##Info(void** info) { return MakeCusolver(jacobi_infos, info); } \
  ASHLAR_SURFACE int cusolverDnDestroy##Name##Info(void* info) {                                            \
    return jacobi_infos.Destroy(info) ? 0 : kCusolverInvalidValue;                                          \
  }                                                                                                         \
  ASHLAR_SURFACE int cusolverDnX##name##SetTolerance(void* info, double tolerance) {                        \
    return SetJacobi(info, &JacobiInfo::tolerance, tolerance);                                              \
  }                                                                                                         \
  ASHLAR_SURFACE int cusolverDnX##name##SetMaxSweeps(void* info, int sweeps) {                              \
    return SetJacobi(info, &JacobiInfo::most_sweeps, sweeps);                                               \
  }                                                                                                         \
  ASHLAR_SURFACE int cusolverDnX##name##SetSortEig(void* info, int sorted) {                                \
    return SetJacobi(info, &JacobiInfo::sorted, sorted);                                                    \
  }                                                                                                         \
  ASHLAR_SURFACE int cusolverDnX##name##GetResidual(void* handle, void* info, double* residual) {           \
    return FoundBySolver(handle, info, residual);                                                           \
  }                                                                                                         \
  ASHLAR_SURFACE int cusolverDnX##name##GetSweeps(void* handle, void* info, int* sweeps) {                  \
    return FoundBySolver(handle, info, sweeps);                                                             \
  }
ASHLAR_JACOBI(Gesvdj, gesvdj)
ASHLAR_JACOBI(Syevj, syevj)

// An approximate decomposition also answers how far off each of a batch is, to the host where it is asked.
#define ASHLAR_GESVDA(letter)                                                                                        \
  ASHLAR_SURFACE int cusolverDn##letter##gesvdaStridedBatched(                                                       \
      void* handle, int, int, int, int, const void*, int, long long, void*, long long, void*, int, long long, void*, \
      int, long long, void*, int, int*, double* residuals, int batch) {                                              \
    const int status = LaunchCusolver(handle);                                                                       \
    if (status != 0 || batch < 0) return status != 0 ? status : kCusolverInvalidValue;                               \
    if (residuals != nullptr) ReadMadeUp(residuals, sizeof(*residuals) * static_cast<std::uint64_t>(batch));         \
    return 0;                                                                                                        \
  }
ASHLAR_GESVDA(S)
ASHLAR_GESVDA(D)
ASHLAR_GESVDA(C)
ASHLAR_GESVDA(Z)

ASHLAR_IGNORED(cusolverDnLoggerSetCallback, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusolverDnLoggerSetFile, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusolverDnLoggerOpenFile, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusolverDnLoggerSetLevel, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusolverDnLoggerSetMask, "there is nothing to log: no line is ever written")
ASHLAR_IGNORED(cusolverDnLoggerForceDisable, "there is nothing to log: no line is ever written")
