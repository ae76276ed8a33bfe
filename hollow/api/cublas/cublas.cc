// cuBLAS: handles and what is set on them. Products and solvers are work for the device (names/cublas.inc).
//
// Signatures and numbers: cublas_api.h of CUDA 11.8, 12.4 and 13.0, which agree on all that is here.

#include "hollow/api/cublas/cublas.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <mutex>

#include "hollow/api/objects.h"
#include "hollow/api/real_library.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"

extern "C" int cudaFree(void* address);

namespace ashlar::hollow {
namespace {

constinit Objects<CublasHandle> cublas_handles(0xB1);
std::atomic<void*> cublas_logger{nullptr};

// cublasStatus_t by number.
const char* CublasStatusName(int status) {
  switch (status) {
    case 0:
      return "CUBLAS_STATUS_SUCCESS";
    case 1:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case 8:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case 11:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case 13:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case 15:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case 16:
      return "CUBLAS_STATUS_LICENSE_ERROR";
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

template <class Value>
int SetOnCublas(void* handle, Value CublasHandle::*field, Value value) {
  CublasHandle* mine = FindCublas(handle);
  if (mine == nullptr) return kCublasNotInitialized;
  mine->*field = value;
  return kCublasSuccess;
}

template <class Value>
int GetFromCublas(void* handle, Value CublasHandle::*field, Value* value) {
  const CublasHandle* mine = FindCublas(handle);
  if (mine == nullptr) return kCublasNotInitialized;
  if (value == nullptr) return kCublasInvalidValue;
  *value = mine->*field;
  return kCublasSuccess;
}

}  // namespace

namespace {

// Never destroyed: a program may compute until its very end.
struct GivenWorkspaces {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint64_t> bytes;  // by address
};
GivenWorkspaces& Workspaces() {
  static GivenWorkspaces& workspaces = *new GivenWorkspaces;
  return workspaces;
}

}  // namespace

void NoteWorkspace(const void* workspace, std::uint64_t bytes) {
  if (workspace == nullptr || bytes == 0) return;
  const std::lock_guard<std::mutex> lock(Workspaces().mutex);
  Workspaces().bytes[reinterpret_cast<std::uint64_t>(workspace)] = bytes;
}

// PyTorch gives cuBLASLt the first part of what it made for cuBLAS: from compute capability 9.0 on, 32 MiB.
bool IsWorkspace(std::uint64_t address, std::uint64_t bytes) {
  constexpr std::uint64_t kOfCublas = std::uint64_t{32} << 20;
  const std::lock_guard<std::mutex> lock(Workspaces().mutex);
  const auto found = Workspaces().bytes.find(address);
  if (found == Workspaces().bytes.end()) return false;
  return found->second == bytes || (bytes == kOfCublas && found->second < bytes);
}

CublasHandle* FindCublas(const void* handle) { return cublas_handles.Find(handle); }

int LaunchCublas(void* handle) {
  const CublasHandle* mine = FindCublas(handle);
  if (mine == nullptr) return kCublasNotInitialized;
  CountLaunch(mine->stream);
  return kCublasSuccess;
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cublasCreate_v2(void** handle) {
  if (handle == nullptr) return kCublasInvalidValue;
  if (cudaFree(nullptr) != 0) return kCublasNotInitialized;  // it makes the device's context, as the library does
  *handle = cublas_handles.Make();
  cublas_handles.Find(*handle)->hold = HoldForCublas();
  return kCublasSuccess;
}
ASHLAR_SURFACE int cublasDestroy_v2(void* handle) {
  if (const CublasHandle* mine = FindCublas(handle)) ReturnHold(mine->hold);
  return cublas_handles.Destroy(handle) ? kCublasSuccess : kCublasNotInitialized;
}

ASHLAR_SURFACE int cublasGetProperty(int type, int* value) {
  return RealProperty("libcublas.so.", "cublasGetProperty", kCublasVersion, type, value) ? 0 : kCublasInvalidValue;
}
ASHLAR_SURFACE int cublasGetVersion_v2(void*, int* version) {  // the handle is not looked at, as in the library
  int part[3] = {};
  if (version == nullptr) return kCublasInvalidValue;
  for (int type = 0; type < 3; ++type) cublasGetProperty(type, &part[type]);
  *version = part[0] * 10000 + part[1] * 100 + part[2];  // CUBLAS_VERSION
  return kCublasSuccess;
}
ASHLAR_SURFACE std::size_t cublasGetCudartVersion() {
  const auto real = reinterpret_cast<std::size_t (*)()>(RealFunction("libcublas.so.", "cublasGetCudartVersion"));
  return real == nullptr ? 12'040 : real();
}
ASHLAR_SURFACE const char* cublasGetStatusName(int status) { return CublasStatusName(status); }
ASHLAR_SURFACE const char* cublasGetStatusString(int status) {
  return RealText("libcublas.so.", "cublasGetStatusString", status, CublasStatusName(status));
}

ASHLAR_SURFACE int cublasSetStream_v2(void* handle, void* stream) {
  if (CublasHandle* mine = FindCublas(handle)) {  // a new stream takes the caller's workspace away
    mine->workspace = nullptr;
    mine->workspace_bytes = 0;
  }
  return SetOnCublas(handle, &CublasHandle::stream, stream);
}
ASHLAR_SURFACE int cublasGetStream_v2(void* handle, void** stream) {
  return GetFromCublas(handle, &CublasHandle::stream, stream);
}
ASHLAR_SURFACE int cublasSetWorkspace_v2(void* handle, void* workspace, std::size_t bytes) {
  const int status = SetOnCublas(handle, &CublasHandle::workspace, workspace);
  if (status == 0) NoteWorkspace(workspace, bytes);
  return status != 0 ? status : SetOnCublas(handle, &CublasHandle::workspace_bytes, std::uint64_t{bytes});
}
ASHLAR_SURFACE int cublasSetMathMode(void* handle, int mode) {
  return SetOnCublas(handle, &CublasHandle::math_mode, mode);
}
ASHLAR_SURFACE int cublasGetMathMode(void* handle, int* mode) {
  return GetFromCublas(handle, &CublasHandle::math_mode, mode);
}
ASHLAR_SURFACE int cublasSetPointerMode_v2(void* handle, int mode) {
  if (mode != 0 && mode != 1) return kCublasInvalidValue;
  return SetOnCublas(handle, &CublasHandle::pointer_mode, mode);
}
ASHLAR_SURFACE int cublasGetPointerMode_v2(void* handle, int* mode) {
  return GetFromCublas(handle, &CublasHandle::pointer_mode, mode);
}
ASHLAR_SURFACE int cublasSetAtomicsMode(void* handle, int mode) {
  return SetOnCublas(handle, &CublasHandle::atomics_mode, mode);
}
ASHLAR_SURFACE int cublasGetAtomicsMode(void* handle, int* mode) {
  return GetFromCublas(handle, &CublasHandle::atomics_mode, mode);
}
ASHLAR_SURFACE int cublasSetSmCountTarget(void* handle, int count) {
  if (count < 0) return kCublasInvalidValue;
  return SetOnCublas(handle, &CublasHandle::sm_count_target, count);
}
ASHLAR_SURFACE int cublasGetSmCountTarget(void* handle, int* count) {
  return GetFromCublas(handle, &CublasHandle::sm_count_target, count);
}
ASHLAR_SURFACE int cublasSetEmulationStrategy(void* handle, int strategy) {
  return SetOnCublas(handle, &CublasHandle::emulation_strategy, strategy);
}
ASHLAR_SURFACE int cublasGetEmulationStrategy(void* handle, int* strategy) {
  return GetFromCublas(handle, &CublasHandle::emulation_strategy, strategy);
}

// There is nothing to log: the settings are accepted, and no line is ever written.
ASHLAR_SURFACE int cublasLoggerConfigure(int, int, int, const char*) { return kCublasSuccess; }
ASHLAR_SURFACE int cublasSetLoggerCallback(void* callback) {
  cublas_logger = callback;
  return kCublasSuccess;
}
ASHLAR_SURFACE int cublasGetLoggerCallback(void** callback) {
  if (callback == nullptr) return kCublasInvalidValue;
  *callback = cublas_logger;
  return kCublasSuccess;
}

// cuBLAS: what answers through a pointer. In host mode the host gets a made-up value, since no kernel computed it; in
// device mode it is work like any other. Copies between host and device are the runtime's.
//
// Signatures: cublas_api.h of CUDA 11.8, 12.4 and 13.0. Those that end in _64 take counts of 64 bits.

extern "C" int cudaMemcpy2D(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int);
extern "C" int cudaMemcpy2DAsync(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int, void*);

namespace ashlar::hollow {
namespace {

struct HostResult {
  void* address;
  std::uint64_t bytes;  // 0: of a type that is not known
};

// Results of `n` elements, for the host where the handle says so. Of no elements they are 0, which the library knows.
int Results(void* handle, std::int64_t n, std::initializer_list<HostResult> results) {
  const CublasHandle* mine = FindCublas(handle);
  if (mine == nullptr) return kCublasNotInitialized;
  for (const HostResult& one : results) {
    if (one.address == nullptr) return kCublasInvalidValue;
    if (one.bytes == 0) return kCublasNotSupported;
  }
  CountLaunch(mine->stream);
  if (mine->pointer_mode != 0) return kCublasSuccess;
  for (const HostResult& one : results) {
    if (n <= 0) {
      std::memset(one.address, 0, one.bytes);
    } else {
      ReadMadeUp(one.address, one.bytes);
    }
  }
  return kCublasSuccess;
}

int Reduce(void* handle, std::int64_t n, void* result, std::uint64_t bytes) {
  return Results(handle, n, {{result, bytes}});
}
int Rotation(void* handle, std::initializer_list<HostResult> results) { return Results(handle, 1, results); }

// cudaMemcpyKind of driver_types.h.
constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;

struct Stride {
  const void* from;
  std::int64_t from_elements;
  void* to;
  std::int64_t to_elements;
};

int CopyRows(std::int64_t row, std::int64_t rows, std::int64_t element, Stride stride, int kind, void* stream,
             bool wait) {
  if (row < 0 || rows < 0 || element <= 0 || stride.from_elements <= 0 || stride.to_elements <= 0) {
    return kCublasInvalidValue;
  }
  if (row == 0 || rows == 0) return kCublasSuccess;
  const auto bytes = [element](std::int64_t elements) { return static_cast<std::size_t>(elements * element); };
  const int error =
      wait ? cudaMemcpy2D(stride.to, bytes(stride.to_elements), stride.from, bytes(stride.from_elements), bytes(row),
                          static_cast<std::size_t>(rows), kind)
           : cudaMemcpy2DAsync(stride.to, bytes(stride.to_elements), stride.from, bytes(stride.from_elements),
                               bytes(row), static_cast<std::size_t>(rows), kind, stream);
  return error == 0 ? kCublasSuccess : kCublasMappingError;
}

// Info of the host is 0 where the arguments are such that the device can work on them.
int LaunchWithInfo(void* handle, int* info, std::int64_t smallest) {
  const CublasHandle* mine = FindCublas(handle);
  if (mine == nullptr) return kCublasNotInitialized;
  if (info == nullptr || smallest < 0) return kCublasInvalidValue;
  *info = 0;
  CountLaunch(mine->stream);
  return kCublasSuccess;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

#define ASHLAR_DOT(name, bytes)                                                                                       \
  ASHLAR_SURFACE int name##_v2(void* handle, int n, const void*, int, const void*, int, void* result) {               \
    return Reduce(handle, n, result, bytes);                                                                          \
  }                                                                                                                   \
  ASHLAR_SURFACE int name##_v2_64(void* handle, std::int64_t n, const void*, std::int64_t, const void*, std::int64_t, \
                                  void* result) {                                                                     \
    return Reduce(handle, n, result, bytes);                                                                          \
  }
ASHLAR_DOT(cublasSdot, 4)
ASHLAR_DOT(cublasDdot, 8)
ASHLAR_DOT(cublasCdotu, 8)
ASHLAR_DOT(cublasCdotc, 8)
ASHLAR_DOT(cublasZdotu, 16)
ASHLAR_DOT(cublasZdotc, 16)

#define ASHLAR_REDUCE(name, bytes, bytes_64)                                                               \
  ASHLAR_SURFACE int name##_v2(void* handle, int n, const void*, int, void* result) {                      \
    return Reduce(handle, n, result, bytes);                                                               \
  }                                                                                                        \
  ASHLAR_SURFACE int name##_v2_64(void* handle, std::int64_t n, const void*, std::int64_t, void* result) { \
    return Reduce(handle, n, result, bytes_64);                                                            \
  }
ASHLAR_REDUCE(cublasSnrm2, 4, 4)
ASHLAR_REDUCE(cublasDnrm2, 8, 8)
ASHLAR_REDUCE(cublasScnrm2, 4, 4)
ASHLAR_REDUCE(cublasDznrm2, 8, 8)
ASHLAR_REDUCE(cublasSasum, 4, 4)
ASHLAR_REDUCE(cublasDasum, 8, 8)
ASHLAR_REDUCE(cublasScasum, 4, 4)
ASHLAR_REDUCE(cublasDzasum, 8, 8)
ASHLAR_REDUCE(cublasIsamax, 4, 8)
ASHLAR_REDUCE(cublasIdamax, 4, 8)
ASHLAR_REDUCE(cublasIcamax, 4, 8)
ASHLAR_REDUCE(cublasIzamax, 4, 8)
ASHLAR_REDUCE(cublasIsamin, 4, 8)
ASHLAR_REDUCE(cublasIdamin, 4, 8)
ASHLAR_REDUCE(cublasIcamin, 4, 8)
ASHLAR_REDUCE(cublasIzamin, 4, 8)

#define ASHLAR_TYPED(name, Count, bytes_of_index)                                                                      \
  ASHLAR_SURFACE int cublasDotEx##name(void* handle, Count n, const void*, int, Count, const void*, int, Count,        \
                                       void* result, int type, int) {                                                  \
    return Reduce(handle, n, result, CudaTypeBytes(type));                                                             \
  }                                                                                                                    \
  ASHLAR_SURFACE int cublasDotcEx##name(void* handle, Count n, const void*, int, Count, const void*, int, Count,       \
                                        void* result, int type, int) {                                                 \
    return Reduce(handle, n, result, CudaTypeBytes(type));                                                             \
  }                                                                                                                    \
  ASHLAR_SURFACE int cublasNrm2Ex##name(void* handle, Count n, const void*, int, Count, void* result, int type, int) { \
    return Reduce(handle, n, result, CudaTypeBytes(type));                                                             \
  }                                                                                                                    \
  ASHLAR_SURFACE int cublasAsumEx##name(void* handle, Count n, const void*, int, Count, void* result, int type, int) { \
    return Reduce(handle, n, result, CudaTypeBytes(type));                                                             \
  }                                                                                                                    \
  ASHLAR_SURFACE int cublasIamaxEx##name(void* handle, Count n, const void*, int, Count, void* result) {               \
    return Reduce(handle, n, result, bytes_of_index);                                                                  \
  }                                                                                                                    \
  ASHLAR_SURFACE int cublasIaminEx##name(void* handle, Count n, const void*, int, Count, void* result) {               \
    return Reduce(handle, n, result, bytes_of_index);                                                                  \
  }
ASHLAR_TYPED(, int, 4)
ASHLAR_TYPED(_64, std::int64_t, 8)

#define ASHLAR_ROTATION(letter, bytes, real_bytes)                                               \
  ASHLAR_SURFACE int cublas##letter##rotg_v2(void* handle, void* a, void* b, void* c, void* s) { \
    return Rotation(handle, {{a, bytes}, {b, bytes}, {c, real_bytes}, {s, bytes}});              \
  }
ASHLAR_ROTATION(S, 4, 4)
ASHLAR_ROTATION(D, 8, 8)
ASHLAR_ROTATION(C, 8, 4)
ASHLAR_ROTATION(Z, 16, 8)
ASHLAR_SURFACE int cublasRotgEx(void* handle, void* a, void* b, int type, void* c, void* s, int rotation_type, int) {
  const std::uint64_t bytes = CudaTypeBytes(type);
  const std::uint64_t rotation_bytes = CudaTypeBytes(rotation_type);
  return Rotation(handle, {{a, bytes}, {b, bytes}, {c, rotation_bytes}, {s, rotation_bytes}});
}
// The five parameters of a modified rotation.
ASHLAR_SURFACE int cublasSrotmg_v2(void* handle, float* d1, float* d2, float* x1, const float*, float* parameters) {
  return Rotation(handle, {{d1, 4}, {d2, 4}, {x1, 4}, {parameters, 20}});
}
ASHLAR_SURFACE int cublasDrotmg_v2(void* handle, double* d1, double* d2, double* x1, const double*,
                                   double* parameters) {
  return Rotation(handle, {{d1, 8}, {d2, 8}, {x1, 8}, {parameters, 40}});
}

#define ASHLAR_WITH_INFO(letter)                                                                                     \
  ASHLAR_SURFACE int cublas##letter##getrsBatched(void* handle, int, int n, int right, const void*, int, const int*, \
                                                  void*, int, int* info, int batch) {                                \
    return LaunchWithInfo(handle, info, std::min({n, right, batch}));                                                \
  }                                                                                                                  \
  ASHLAR_SURFACE int cublas##letter##geqrfBatched(void* handle, int m, int n, void*, int, void*, int* info,          \
                                                  int batch) {                                                       \
    return LaunchWithInfo(handle, info, std::min({m, n, batch}));                                                    \
  }                                                                                                                  \
  ASHLAR_SURFACE int cublas##letter##gelsBatched(void* handle, int, int m, int n, int, void*, int, void*, int,       \
                                                 int* info, int*, int batch) {                                       \
    return LaunchWithInfo(handle, info, std::min({m, n, batch}));                                                    \
  }
ASHLAR_WITH_INFO(S)
ASHLAR_WITH_INFO(D)
ASHLAR_WITH_INFO(C)
ASHLAR_WITH_INFO(Z)

#define ASHLAR_COPIES(verb, kind, end, Count)                                                                      \
  ASHLAR_SURFACE int cublas##verb##Vector##end(Count n, Count size, const void* x, Count x_step, void* y,          \
                                               Count y_step) {                                                     \
    return CopyRows(1, n, size, {x, x_step, y, y_step}, kind, nullptr, true);                                      \
  }                                                                                                                \
  ASHLAR_SURFACE int cublas##verb##VectorAsync##end(Count n, Count size, const void* x, Count x_step, void* y,     \
                                                    Count y_step, void* stream) {                                  \
    return CopyRows(1, n, size, {x, x_step, y, y_step}, kind, stream, false);                                      \
  }                                                                                                                \
  ASHLAR_SURFACE int cublas##verb##Matrix##end(Count rows, Count columns, Count size, const void* a, Count a_step, \
                                               void* b, Count b_step) {                                            \
    return CopyRows(rows, columns, size, {a, a_step, b, b_step}, kind, nullptr, true);                             \
  }                                                                                                                \
  ASHLAR_SURFACE int cublas##verb##MatrixAsync##end(Count rows, Count columns, Count size, const void* a,          \
                                                    Count a_step, void* b, Count b_step, void* stream) {           \
    return CopyRows(rows, columns, size, {a, a_step, b, b_step}, kind, stream, false);                             \
  }
ASHLAR_COPIES(Set, kHostToDevice, , int)
ASHLAR_COPIES(Set, kHostToDevice, _64, std::int64_t)
ASHLAR_COPIES(Get, kDeviceToHost, , int)
ASHLAR_COPIES(Get, kDeviceToHost, _64, std::int64_t)
