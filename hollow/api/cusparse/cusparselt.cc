// cuSPARSELt: handles, descriptors and plans in the caller's memory, marked by kind. Products and compressions are work
// for the device; a product's algorithm is number 0 of one.
//
// Signatures: cusparseLt.h of 0.8. A structured matrix keeps two of four values: compressed it has half of them, and
// two bits for each that is kept, which tell its place (9/16 of 16-bit values, 10/16 of 8-bit values).
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"

extern "C" int cudaFree(void* address);
extern "C" int cusparseGetProperty(int type, int* value);
extern "C" const char* cusparseGetErrorName(int status);
extern "C" const char* cusparseGetErrorString(int status);

namespace ashlar::hollow {
namespace {

constexpr int kCusparseLtNotInitialized = 1;

// The first words of what the caller keeps; every structure of the header has room for 512 bytes.
struct LtSparse {
  std::uint64_t mark;
  std::int64_t rows, columns;
  std::int32_t value_type;
  std::int32_t attributes[8];
};
constexpr std::uint64_t kLtHandleMark = 0x4C7448616E646C65;
constexpr std::uint64_t kLtMatrixMark = 0x4C744D6174726978;
constexpr std::uint64_t kLtProductMark = 0x4C7450726F647563;
constexpr std::uint64_t kLtChoiceMark = 0x4C7443686F696365;
constexpr std::uint64_t kLtPlanMark = 0x4C74506C616E0000;

bool IsMarked(const void* words, std::uint64_t mark) {
  return words != nullptr && static_cast<const LtSparse*>(words)->mark == mark;
}
int MarkAs(void* words, std::uint64_t mark) {
  if (words == nullptr) return kCusparseInvalidValue;
  *static_cast<LtSparse*>(words) = LtSparse{mark, 0, 0, 0, {}};
  return 0;
}
int Unmark(const void* words, std::uint64_t mark) {
  if (!IsMarked(words, mark)) return kCusparseInvalidValue;
  const_cast<LtSparse*>(static_cast<const LtSparse*>(words))->mark = 0;
  return 0;
}

int DescribeMatrix(const void* handle, void* matrix, std::int64_t rows, std::int64_t columns, int type) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  if (matrix == nullptr || rows < 1 || columns < 1 || CudaTypeBits(type) == 0) return kCusparseInvalidValue;
  *static_cast<LtSparse*>(matrix) = LtSparse{kLtMatrixMark, rows, columns, type, {}};
  return 0;
}

int Compressed(const void* matrix, std::size_t* bytes, std::size_t* buffer_bytes) {
  if (!IsMarked(matrix, kLtMatrixMark) || bytes == nullptr || buffer_bytes == nullptr) return kCusparseInvalidValue;
  const auto* mine = static_cast<const LtSparse*>(matrix);
  const auto kept = static_cast<std::uint64_t>(mine->rows * mine->columns) / 2;
  constexpr std::uint64_t kPlaceBits = 2;
  *bytes = (kept * (CudaTypeBits(mine->value_type) + kPlaceBits) + 7) / 8;
  *buffer_bytes = kWorkspaceBytes;
  return 0;
}

int LaunchOn(const void* handle, bool sound, void* stream) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  if (!sound) return kCusparseInvalidValue;
  CountLaunch(stream);
  return 0;
}
void* FirstStream(void* const* streams, std::int32_t count) {
  return streams != nullptr && count > 0 ? streams[0] : nullptr;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cusparseLtInit(void* handle) {
  return cudaFree(nullptr) != 0 ? kCusparseLtNotInitialized : MarkAs(handle, kLtHandleMark);
}
ASHLAR_SURFACE int cusparseLtDestroy(const void* handle) { return Unmark(handle, kLtHandleMark); }
ASHLAR_SURFACE int cusparseLtGetProperty(int type, int* value) { return cusparseGetProperty(type, value); }
ASHLAR_SURFACE const char* cusparseLtGetErrorName(int status) { return cusparseGetErrorName(status); }
ASHLAR_SURFACE const char* cusparseLtGetErrorString(int status) { return cusparseGetErrorString(status); }

ASHLAR_SURFACE int cusparseLtDenseDescriptorInit(const void* handle, void* matrix, std::int64_t rows,
                                                 std::int64_t columns, std::int64_t, std::uint32_t, int type, int) {
  return DescribeMatrix(handle, matrix, rows, columns, type);
}
ASHLAR_SURFACE int cusparseLtStructuredDescriptorInit(const void* handle, void* matrix, std::int64_t rows,
                                                      std::int64_t columns, std::int64_t, std::uint32_t, int type, int,
                                                      int) {
  return DescribeMatrix(handle, matrix, rows, columns, type);
}
ASHLAR_SURFACE int cusparseLtMatDescriptorDestroy(const void* matrix) { return Unmark(matrix, kLtMatrixMark); }
ASHLAR_SURFACE int cusparseLtMatmulDescriptorInit(const void* handle, void* product, int, int, const void* a,
                                                  const void* b, const void* c, const void* d, int) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  const bool sound = IsMarked(a, kLtMatrixMark) && IsMarked(b, kLtMatrixMark) && IsMarked(c, kLtMatrixMark) &&
                     IsMarked(d, kLtMatrixMark);
  return sound ? MarkAs(product, kLtProductMark) : kCusparseInvalidValue;
}
// What a product adds or scales is not computed, and changes no size.
ASHLAR_SURFACE int cusparseLtMatmulDescSetAttribute(const void* handle, void* product, int, const void* value,
                                                    std::size_t) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  return IsMarked(product, kLtProductMark) && value != nullptr ? 0 : kCusparseInvalidValue;
}
ASHLAR_SURFACE int cusparseLtMatDescSetAttribute(const void* handle, void* matrix, int, const void* value,
                                                 std::size_t) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  return IsMarked(matrix, kLtMatrixMark) && value != nullptr ? 0 : kCusparseInvalidValue;
}

// cusparseLtMatmulAlgAttribute_t: 0 CONFIG_ID, 1 CONFIG_MAX_ID, 2 SEARCH_ITERATIONS, 3 SPLIT_K, 4 SPLIT_K_MODE,
// 5 SPLIT_K_BUFFERS.
ASHLAR_SURFACE int cusparseLtMatmulAlgSelectionInit(const void* handle, void* choice, const void* product, int) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  if (!IsMarked(product, kLtProductMark) || choice == nullptr) return kCusparseInvalidValue;
  *static_cast<LtSparse*>(choice) = LtSparse{kLtChoiceMark, 0, 0, 0, {0, 1, 5, 1, 1, 0}};
  return 0;
}
ASHLAR_SURFACE int cusparseLtMatmulAlgSelectionDestroy(const void* choice) { return Unmark(choice, kLtChoiceMark); }
ASHLAR_SURFACE int cusparseLtMatmulAlgSetAttribute(const void* handle, void* choice, int attribute, const void* value,
                                                   std::size_t bytes) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  const bool sound = IsMarked(choice, kLtChoiceMark) && value != nullptr && bytes == sizeof(std::int32_t);
  if (!sound || attribute < 0 || attribute > 5 || attribute == 1) return kCusparseInvalidValue;
  std::memcpy(&static_cast<LtSparse*>(choice)->attributes[attribute], value, bytes);
  return 0;
}
ASHLAR_SURFACE int cusparseLtMatmulAlgGetAttribute(const void* handle, const void* choice, int attribute, void* value,
                                                   std::size_t bytes) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  const bool sound = IsMarked(choice, kLtChoiceMark) && value != nullptr && bytes == sizeof(std::int32_t);
  if (!sound || attribute < 0 || attribute > 5) return kCusparseInvalidValue;
  std::memcpy(value, &static_cast<const LtSparse*>(choice)->attributes[attribute], bytes);
  return 0;
}
ASHLAR_SURFACE int cusparseLtMatmulPlanInit(const void* handle, void* plan, const void* product, const void* choice) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  return IsMarked(product, kLtProductMark) && IsMarked(choice, kLtChoiceMark) ? MarkAs(plan, kLtPlanMark)
                                                                              : kCusparseInvalidValue;
}
ASHLAR_SURFACE int cusparseLtMatmulPlanDestroy(const void* plan) { return Unmark(plan, kLtPlanMark); }
ASHLAR_SURFACE int cusparseLtMatmulGetWorkspace(const void* handle, const void* plan, std::size_t* bytes) {
  if (!IsMarked(handle, kLtHandleMark)) return kCusparseLtNotInitialized;
  if (!IsMarked(plan, kLtPlanMark) || bytes == nullptr) return kCusparseInvalidValue;
  *bytes = kWorkspaceBytes;
  return 0;
}

ASHLAR_SURFACE int cusparseLtMatmul(const void* handle, const void* plan, const void*, const void*, const void*,
                                    const void*, const void*, void*, void*, void* const* streams, std::int32_t count) {
  return LaunchOn(handle, IsMarked(plan, kLtPlanMark), FirstStream(streams, count));
}
ASHLAR_SURFACE int cusparseLtMatmulSearch(const void* handle, void* plan, const void*, const void*, const void*,
                                          const void*, const void*, void*, void*, void* const* streams,
                                          std::int32_t count) {
  return LaunchOn(handle, IsMarked(plan, kLtPlanMark), FirstStream(streams, count));
}
ASHLAR_SURFACE int cusparseLtSpMMAPrune(const void* handle, const void* product, const void*, void*, int,
                                        void* stream) {
  return LaunchOn(handle, IsMarked(product, kLtProductMark), stream);
}
ASHLAR_SURFACE int cusparseLtSpMMAPrune2(const void* handle, const void* matrix, int, int, const void*, void*, int,
                                         void* stream) {
  return LaunchOn(handle, IsMarked(matrix, kLtMatrixMark), stream);
}
ASHLAR_SURFACE int cusparseLtSpMMACompressedSize2(const void* handle, const void* matrix, std::size_t* bytes,
                                                  std::size_t* buffer_bytes) {
  return IsMarked(handle, kLtHandleMark) ? Compressed(matrix, bytes, buffer_bytes) : kCusparseLtNotInitialized;
}
ASHLAR_SURFACE int cusparseLtSpMMACompress2(const void* handle, const void* matrix, int, int, const void*, void*, void*,
                                            void* stream) {
  return LaunchOn(handle, IsMarked(matrix, kLtMatrixMark), stream);
}
