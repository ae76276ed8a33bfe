// cuBLASLt: handles, descriptors, and heuristics that find one algorithm, which needs no workspace. Products are work
// for the device.
//
// Signatures: cublasLt.h of CUDA 11.8, 12.4 and 13.0.
#include "hollow/surfaces/cublaslt.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include "hollow/surfaces/cublas.h"
#include "hollow/surfaces/cublaslt_descriptors.h"
#include "hollow/surfaces/objects.h"
#include "hollow/surfaces/real_library.h"
#include "hollow/surfaces/surface.h"
#include "hollow/surfaces/workspace.h"

extern "C" int cudaFree(void* address);
extern "C" const char* cublasGetStatusName(int status);

namespace ashlar::hollow {
namespace {

struct LtHandle {
  bool alive = true;
};
constinit Objects<LtHandle> lt_handles(0xB2);
constinit std::atomic<std::size_t> lt_cache_capacity{8192};

// A handle of cuBLAS is one of cuBLASLt too.
bool IsLtHandle(const void* handle) { return lt_handles.Find(handle) != nullptr || FindCublas(handle) != nullptr; }

bool AreLayouts(std::initializer_list<const void*> layouts) {
  for (const void* one : layouts) {
    if (!IsLt(kLtLayout, one)) return false;
  }
  return true;
}

// The one algorithm: number 0.
int FillAlgo(LtAlgo* algo, int id) {
  InitLt(kLtAlgo, algo, sizeof(*algo));
  return SetLt(kLtAlgo, algo, 0, &id, sizeof(id));
}

void FillResult(const LtAlgo& algo, LtHeuristicResult* result) {
  *result = {};
  result->algo = algo;
  result->workspace_bytes = kWorkspaceBytes;
  result->state = kCublasSuccess;
  result->waves_count = 1.0F;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cublasLtCreate(void** handle) {
  if (handle == nullptr) return kCublasInvalidValue;
  if (cudaFree(nullptr) != 0) return kCublasNotInitialized;  // it makes the device's context, as the library does
  *handle = lt_handles.Make();
  return kCublasSuccess;
}
ASHLAR_SURFACE int cublasLtDestroy(void* handle) {
  return lt_handles.Destroy(handle) ? kCublasSuccess : kCublasNotInitialized;
}
ASHLAR_SURFACE std::size_t cublasLtGetVersion() {
  const auto real = reinterpret_cast<std::size_t (*)()>(RealFunction("libcublasLt.so.", "cublasLtGetVersion"));
  return real == nullptr ? kCublasVersion : real();
}
ASHLAR_SURFACE std::size_t cublasLtGetCudartVersion() {
  const auto real = reinterpret_cast<std::size_t (*)()>(RealFunction("libcublasLt.so.", "cublasLtGetCudartVersion"));
  return real == nullptr ? 12'040 : real();
}
ASHLAR_SURFACE int cublasLtGetProperty(int type, int* value) {
  return RealProperty("libcublasLt.so.", "cublasLtGetProperty", kCublasVersion, type, value) ? 0 : kCublasInvalidValue;
}
ASHLAR_SURFACE const char* cublasLtGetStatusName(int status) { return cublasGetStatusName(status); }
ASHLAR_SURFACE const char* cublasLtGetStatusString(int status) {
  return RealText("libcublasLt.so.", "cublasLtGetStatusString", status, cublasGetStatusName(status));
}
ASHLAR_SURFACE int cublasLtHeuristicsCacheGetCapacity(std::size_t* capacity) {
  if (capacity == nullptr) return kCublasInvalidValue;
  *capacity = lt_cache_capacity;
  return kCublasSuccess;
}
ASHLAR_SURFACE int cublasLtHeuristicsCacheSetCapacity(std::size_t capacity) {
  lt_cache_capacity = capacity;
  return kCublasSuccess;
}
// Which instructions of the CPU the library may use: it uses none here.
ASHLAR_SURFACE unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask) {
  static constinit std::atomic<unsigned> before{0};
  return before.exchange(mask);
}

// There is nothing to log: the settings are accepted, and no line is ever written.
ASHLAR_SURFACE int cublasLtLoggerSetCallback(void*) { return kCublasSuccess; }
ASHLAR_SURFACE int cublasLtLoggerSetFile(std::FILE*) { return kCublasSuccess; }
ASHLAR_SURFACE int cublasLtLoggerOpenFile(const char*) { return kCublasSuccess; }
ASHLAR_SURFACE int cublasLtLoggerSetLevel(int) { return kCublasSuccess; }
ASHLAR_SURFACE int cublasLtLoggerSetMask(int) { return kCublasSuccess; }
ASHLAR_SURFACE int cublasLtLoggerForceDisable() { return kCublasSuccess; }

ASHLAR_SURFACE int cublasLtMatmul(void* handle, void* matmul, const void*, const void*, void* a_layout, const void*,
                                  void* b_layout, const void*, const void*, void* c_layout, void*, void* d_layout,
                                  const void*, void*, std::size_t, void* stream) {
  if (!IsLtHandle(handle)) return kCublasNotInitialized;
  if (!IsLt(kLtMatmul, matmul) || !AreLayouts({a_layout, b_layout, c_layout, d_layout})) return kCublasInvalidValue;
  CountLaunch(stream);
  return kCublasSuccess;
}
ASHLAR_SURFACE int cublasLtMatrixTransform(void* handle, void* transform, const void*, const void*, void* a_layout,
                                           const void*, const void*, void*, void*, void* c_layout, void* stream) {
  if (!IsLtHandle(handle)) return kCublasNotInitialized;
  if (!IsLt(kLtTransform, transform) || !AreLayouts({a_layout, c_layout})) return kCublasInvalidValue;
  CountLaunch(stream);
  return kCublasSuccess;
}

ASHLAR_SURFACE int cublasLtMatmulAlgoGetHeuristic(void* handle, void* matmul, void* a_layout, void* b_layout,
                                                  void* c_layout, void* d_layout, void* preference, int wanted,
                                                  LtHeuristicResult* results, int* count) {
  if (!IsLtHandle(handle)) return kCublasNotInitialized;
  if (wanted < 1 || results == nullptr || count == nullptr || !IsLt(kLtMatmul, matmul) ||
      !AreLayouts({a_layout, b_layout, c_layout, d_layout}) || !IsLt(kLtPreference, preference)) {
    return kCublasInvalidValue;
  }
  LtAlgo algo;
  FillAlgo(&algo, 0);
  FillResult(algo, &results[0]);
  *count = 1;
  return kCublasSuccess;
}
ASHLAR_SURFACE int cublasLtMatmulAlgoGetIds(void* handle, int, int, int, int, int, int, int wanted, int* ids,
                                            int* count) {
  if (!IsLtHandle(handle)) return kCublasNotInitialized;
  if (wanted < 1 || ids == nullptr) return kCublasInvalidValue;
  ids[0] = 0;
  if (count != nullptr) *count = 1;
  return kCublasSuccess;
}
ASHLAR_SURFACE int cublasLtMatmulAlgoInit(void* handle, int, int, int, int, int, int, int id, LtAlgo* algo) {
  if (!IsLtHandle(handle)) return kCublasNotInitialized;
  return algo == nullptr ? kCublasInvalidValue : FillAlgo(algo, id);
}
ASHLAR_SURFACE int cublasLtMatmulAlgoCheck(void* handle, void* matmul, void* a_layout, void* b_layout, void* c_layout,
                                           void* d_layout, const LtAlgo* algo, LtHeuristicResult* result) {
  if (!IsLtHandle(handle)) return kCublasNotInitialized;
  if (!IsLt(kLtMatmul, matmul) || !AreLayouts({a_layout, b_layout, c_layout, d_layout}) || !IsLt(kLtAlgo, algo) ||
      result == nullptr) {
    return kCublasInvalidValue;
  }
  FillResult(*algo, result);
  return kCublasSuccess;
}

// The attributes of a kind of descriptor.
#define ASHLAR_LT_ATTRIBUTES(name, table)                                                                   \
  ASHLAR_SURFACE int name##SetAttribute(void* words, int attribute, const void* value, std::size_t bytes) { \
    return SetLt(table, words, attribute, value, bytes);                                                    \
  }                                                                                                         \
  ASHLAR_SURFACE int name##GetAttribute(const void* words, int attribute, void* value, std::size_t bytes,   \
                                        std::size_t* written) {                                             \
    return GetLt(table, words, attribute, value, bytes, written);                                           \
  }
#define ASHLAR_LT_DESCRIPTOR(name, table)                                           \
  ASHLAR_SURFACE int name##Destroy(void* words) { return DestroyLt(table, words); } \
  ASHLAR_LT_ATTRIBUTES(name, table)

ASHLAR_LT_DESCRIPTOR(cublasLtMatrixLayout, kLtLayout)
ASHLAR_LT_DESCRIPTOR(cublasLtMatmulDesc, kLtMatmul)
ASHLAR_LT_DESCRIPTOR(cublasLtMatrixTransformDesc, kLtTransform)
ASHLAR_LT_DESCRIPTOR(cublasLtMatmulPreference, kLtPreference)
ASHLAR_LT_DESCRIPTOR(cublasLtEmulationDesc, kLtEmulation)
ASHLAR_LT_ATTRIBUTES(cublasLtMatmulAlgoConfig, kLtAlgo)

namespace {

int FillLayout(void* words, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t step) {
  SetLt(kLtLayout, words, 0, &type, sizeof(type));
  SetLt(kLtLayout, words, 2, &rows, sizeof(rows));
  SetLt(kLtLayout, words, 3, &columns, sizeof(columns));
  return SetLt(kLtLayout, words, 4, &step, sizeof(step));
}
int FillTypes(void* words, int compute_type, int scale_type) {
  SetLt(kLtMatmul, words, 0, &compute_type, sizeof(compute_type));
  return SetLt(kLtMatmul, words, 1, &scale_type, sizeof(scale_type));
}

}  // namespace

ASHLAR_SURFACE int cublasLtMatrixLayoutInit_internal(void* words, std::size_t size, int type, std::uint64_t rows,
                                                     std::uint64_t columns, std::int64_t step) {
  const int status = InitLt(kLtLayout, words, size);
  return status != 0 ? status : FillLayout(words, type, rows, columns, step);
}
ASHLAR_SURFACE int cublasLtMatrixLayoutCreate(void** words, int type, std::uint64_t rows, std::uint64_t columns,
                                              std::int64_t step) {
  const int status = MakeLt(kLtLayout, words);
  return status != 0 ? status : FillLayout(*words, type, rows, columns, step);
}
ASHLAR_SURFACE int cublasLtMatmulDescInit_internal(void* words, std::size_t size, int compute_type, int scale_type) {
  const int status = InitLt(kLtMatmul, words, size);
  return status != 0 ? status : FillTypes(words, compute_type, scale_type);
}
ASHLAR_SURFACE int cublasLtMatmulDescCreate(void** words, int compute_type, int scale_type) {
  const int status = MakeLt(kLtMatmul, words);
  return status != 0 ? status : FillTypes(*words, compute_type, scale_type);
}
ASHLAR_SURFACE int cublasLtMatrixTransformDescInit_internal(void* words, std::size_t size, int scale_type) {
  const int status = InitLt(kLtTransform, words, size);
  return status != 0 ? status : SetLt(kLtTransform, words, 0, &scale_type, sizeof(scale_type));
}
ASHLAR_SURFACE int cublasLtMatrixTransformDescCreate(void** words, int scale_type) {
  const int status = MakeLt(kLtTransform, words);
  return status != 0 ? status : SetLt(kLtTransform, *words, 0, &scale_type, sizeof(scale_type));
}
ASHLAR_SURFACE int cublasLtMatmulPreferenceInit_internal(void* words, std::size_t size) {
  return InitLt(kLtPreference, words, size);
}
ASHLAR_SURFACE int cublasLtMatmulPreferenceCreate(void** words) { return MakeLt(kLtPreference, words); }
ASHLAR_SURFACE int cublasLtEmulationDescInit_internal(void* words, std::size_t size) {
  return InitLt(kLtEmulation, words, size);
}
ASHLAR_SURFACE int cublasLtEmulationDescCreate(void** words) { return MakeLt(kLtEmulation, words); }
