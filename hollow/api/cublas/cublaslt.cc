#include "hollow/api/cublas/cublaslt.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <new>

#include "hollow/api/cublas/cublas.h"
#include "hollow/api/objects.h"
#include "hollow/api/real_library.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"

namespace ashlar::hollow {
namespace {

// Numbers, sizes and first values: cublasLt.h of CUDA 11.8, 12.4 and 13.0. What only one of them has comes last.
constexpr std::uint64_t kAll = ~std::uint64_t{0};
constexpr LtAttribute kLayout[] = {
    {0, 4, 0},  // TYPE
    {1, 4, 0},  // ORDER: COL
    {2, 8, 0},  // ROWS
    {3, 8, 0},  // COLS
    {4, 8, 0},  // LD
    {5, 4, 1},  // BATCH_COUNT
    {6, 8, 0},  // STRIDED_BATCH_OFFSET
    {7, 8, 0},  // PLANE_OFFSET
    {8, 4, 0},  // BATCH_MODE
};
constexpr LtAttribute kMatmul[] = {
    {0, 4, 0},      // COMPUTE_TYPE
    {1, 4, 0},      // SCALE_TYPE
    {2, 4, 0},      // POINTER_MODE: HOST
    {3, 4, 0},      // TRANSA
    {4, 4, 0},      // TRANSB
    {5, 4, 0},      // TRANSC
    {6, 4, 2},      // FILL_MODE: FULL
    {7, 4, 1},      // EPILOGUE: DEFAULT
    {8, 8, 0},      // BIAS_POINTER
    {10, 8, 0},     // BIAS_BATCH_STRIDE
    {11, 8, 0},     // EPILOGUE_AUX_POINTER
    {12, 8, 0},     // EPILOGUE_AUX_LD
    {13, 8, 0},     // EPILOGUE_AUX_BATCH_STRIDE
    {14, 8, 0},     // ALPHA_VECTOR_BATCH_STRIDE
    {15, 4, 0},     // SM_COUNT_TARGET
    {17, 8, 0},     // A_SCALE_POINTER
    {18, 8, 0},     // B_SCALE_POINTER
    {19, 8, 0},     // C_SCALE_POINTER
    {20, 8, 0},     // D_SCALE_POINTER
    {21, 8, 0},     // AMAX_D_POINTER
    {22, 4, kAll},  // EPILOGUE_AUX_DATA_TYPE
    {23, 8, 0},     // EPILOGUE_AUX_SCALE_POINTER
    {24, 8, 0},     // EPILOGUE_AUX_AMAX_POINTER
    {25, 1, 0},     // FAST_ACCUM
    {26, 4, kAll},  // BIAS_DATA_TYPE
    {27, 4, 0},     // ATOMIC_SYNC_NUM_CHUNKS_D_ROWS
    {28, 4, 0},     // ATOMIC_SYNC_NUM_CHUNKS_D_COLS
    {29, 8, 0},     // ATOMIC_SYNC_IN_COUNTERS_POINTER
    {30, 8, 0},     // ATOMIC_SYNC_OUT_COUNTERS_POINTER
    {31, 4, 0},     // A_SCALE_MODE
    {32, 4, 0},     // B_SCALE_MODE
    {33, 4, 0},     // C_SCALE_MODE
    {34, 4, 0},     // D_SCALE_MODE
    {35, 4, 0},     // EPILOGUE_AUX_SCALE_MODE
    {36, 8, 0},     // D_OUT_SCALE_POINTER
    {37, 4, 0},     // D_OUT_SCALE_MODE
    {38, 8, 0},     // EMULATION_DESCRIPTOR
};
constexpr LtAttribute kTransform[] = {
    {0, 4, 0},  // SCALE_TYPE
    {1, 4, 0},  // POINTER_MODE: HOST
    {2, 4, 0},  // TRANSA
    {3, 4, 0},  // TRANSB
};
constexpr LtAttribute kPreference[] = {
    {0, 4, 0},      // SEARCH_MODE: BEST_FIT
    {1, 8, 0},      // MAX_WORKSPACE_BYTES
    {3, 4, 7},      // REDUCTION_SCHEME_MASK
    {5, 4, 256},    // MIN_ALIGNMENT_A_BYTES
    {6, 4, 256},    // MIN_ALIGNMENT_B_BYTES
    {7, 4, 256},    // MIN_ALIGNMENT_C_BYTES
    {8, 4, 256},    // MIN_ALIGNMENT_D_BYTES
    {9, 4, 0},      // MAX_WAVES_COUNT
    {12, 8, kAll},  // IMPL_MASK
    {2, 4, kAll},   // MATH_MODE_MASK, of CUDA 11 as are those below
    {4, 4, kAll},   // GAUSSIAN_MODE_MASK
    {10, 4, kAll},  // POINTER_MODE_MASK
    {11, 4, kAll},  // EPILOGUE_MASK
    {13, 4, 0},     // SM_COUNT_TARGET
};
constexpr LtAttribute kEmulation[] = {
    {0, 4, 0},  // STRATEGY
    {1, 4, 0},  // SPECIAL_VALUES_SUPPORT
    {2, 4, 0},  // FIXEDPOINT_MANTISSA_CONTROL
    {3, 4, 0},  // FIXEDPOINT_MAX_MANTISSA_BIT_COUNT
    {4, 4, 0},  // FIXEDPOINT_MANTISSA_BIT_OFFSET
    {5, 8, 0},  // FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER
};
constexpr LtAttribute kAlgo[] = {
    {0, 4, 0},  // ID
    {1, 4, 0},  // TILE_ID
    {2, 4, 1},  // SPLITK_NUM
    {3, 4, 0},  // REDUCTION_SCHEME
    {4, 4, 0},  // CTA_SWIZZLING
    {5, 4, 0},  // CUSTOM_OPTION
    {6, 4, 0},  // STAGES_ID
    {7, 2, 0},  // INNER_SHAPE_ID
    {8, 2, 0},  // CLUSTER_SHAPE_ID
};

struct LtMark {
  std::uint32_t kind;   // 0: none
  std::uint16_t bytes;  // in all, the mark included
  bool made;            // by the library
};
static_assert(sizeof(LtMark) == 8);

template <std::size_t kCount>
constexpr LtTable TableOf(std::uint32_t kind, std::uint32_t words, const LtAttribute (&attributes)[kCount]) {
  return {kind, words * 8, attributes, kCount};
}

LtMark MarkOf(const void* words) {
  LtMark mark;
  std::memcpy(&mark, words, sizeof(mark));
  return mark;
}

// Where the attribute lies, or 0; `bytes` is its size.
std::size_t PlaceOf(const LtTable& table, const void* words, int attribute, std::size_t* bytes) {
  std::size_t place = sizeof(LtMark);
  for (int i = 0; i < table.count; ++i) {
    const LtAttribute& one = table.attributes[i];
    if (one.number == attribute) {
      *bytes = one.bytes;
      return place + one.bytes <= MarkOf(words).bytes ? place : 0;
    }
    place += one.bytes;
  }
  return 0;
}

constexpr std::size_t kLtMostBytes = 256;
struct SpareLt {
  SpareLt* next;
};
constinit std::mutex spare_lt_mutex;
constinit SpareLt* spare_lt = nullptr;  // its mark is gone: `next` lies behind it

void* TakeLtBytes() {
  const std::lock_guard lock(spare_lt_mutex);
  if (spare_lt == nullptr) return ::operator new(kLtMostBytes);
  SpareLt* taken = spare_lt;
  spare_lt = taken->next;
  return reinterpret_cast<char*>(taken) - sizeof(LtMark);
}

void KeepLtBytes(void* words) {
  std::memset(words, 0, sizeof(LtMark));
  auto* spare = reinterpret_cast<SpareLt*>(static_cast<char*>(words) + sizeof(LtMark));
  const std::lock_guard lock(spare_lt_mutex);
  spare->next = spare_lt;
  spare_lt = spare;
}

}  // namespace

const LtTable kLtLayout = TableOf(0x4C61794Fu, 8, kLayout);
const LtTable kLtMatmul = TableOf(0x4D61744Du, 32, kMatmul);
const LtTable kLtTransform = TableOf(0x5472616Eu, 8, kTransform);
const LtTable kLtPreference = TableOf(0x50726566u, 10, kPreference);
const LtTable kLtEmulation = TableOf(0x456D756Cu, 8, kEmulation);
const LtTable kLtAlgo = TableOf(0x416C676Fu, 8, kAlgo);

int InitLt(const LtTable& table, void* words, std::size_t bytes) {
  if (words == nullptr || bytes < sizeof(LtMark) || bytes > kLtMostBytes) return kCublasInvalidValue;
  std::memset(words, 0, bytes);
  const LtMark mark{table.kind, static_cast<std::uint16_t>(bytes), false};
  std::memcpy(words, &mark, sizeof(mark));
  for (int i = 0; i < table.count; ++i) {
    const LtAttribute& one = table.attributes[i];
    std::size_t size = 0;
    const std::size_t place = PlaceOf(table, words, one.number, &size);
    if (place != 0) std::memcpy(static_cast<char*>(words) + place, &one.value, size);
  }
  return kCublasSuccess;
}

int MakeLt(const LtTable& table, void** words) {
  if (words == nullptr) return kCublasInvalidValue;
  *words = TakeLtBytes();
  InitLt(table, *words, table.words_bytes);
  const LtMark mark{table.kind, static_cast<std::uint16_t>(table.words_bytes), true};
  std::memcpy(*words, &mark, sizeof(mark));
  return kCublasSuccess;
}

bool IsLt(const LtTable& table, const void* words) { return words != nullptr && MarkOf(words).kind == table.kind; }

int DestroyLt(const LtTable& table, void* words) {
  if (words == nullptr) return kCublasSuccess;  // as free(NULL)
  if (!IsLt(table, words) || !MarkOf(words).made) return kCublasInvalidValue;
  KeepLtBytes(words);
  return kCublasSuccess;
}

int SetLt(const LtTable& table, void* words, int attribute, const void* value, std::size_t bytes) {
  if (!IsLt(table, words) || value == nullptr) return kCublasInvalidValue;
  std::size_t size = 0;
  const std::size_t place = PlaceOf(table, words, attribute, &size);
  if (place == 0 || bytes != size) return kCublasInvalidValue;
  std::memcpy(static_cast<char*>(words) + place, value, size);
  return kCublasSuccess;
}

int GetLt(const LtTable& table, const void* words, int attribute, void* value, std::size_t bytes,
          std::size_t* written) {
  if (!IsLt(table, words)) return kCublasInvalidValue;
  std::size_t size = 0;
  const std::size_t place = PlaceOf(table, words, attribute, &size);
  if (place == 0) return kCublasInvalidValue;
  if (written != nullptr) *written = size;
  if (bytes == 0) return written == nullptr ? kCublasInvalidValue : kCublasSuccess;  // it asks for the size alone
  if (value == nullptr || bytes < size) return kCublasInvalidValue;
  std::memcpy(value, static_cast<const char*>(words) + place, size);
  return kCublasSuccess;
}

}  // namespace ashlar::hollow

// cuBLASLt: handles, descriptors, and heuristics that find one algorithm, which needs no workspace. Products are work
// for the device.
//
// Signatures: cublasLt.h of CUDA 11.8, 12.4 and 13.0.

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
                                  const void*, void* workspace, std::size_t bytes, void* stream) {
  if (!IsLtHandle(handle)) return kCublasNotInitialized;
  if (!IsLt(kLtMatmul, matmul) || !AreLayouts({a_layout, b_layout, c_layout, d_layout})) return kCublasInvalidValue;
  NoteWorkspace(workspace, bytes);
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
