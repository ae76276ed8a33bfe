// cuSPARSE: the descriptors of sparse matrices of the generic interface.
//
// Signatures: cusparse.h of CUDA 11.8, 12.4 and 13.0.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hollow/api/cusparse/cusparse.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"

namespace ashlar::hollow {

constinit Objects<SparseMatrix> sparse_matrices(0xE3);

namespace {

int MakeMatrix(void** made, const SparseMatrix& matrix) {
  if (matrix.rows < 0 || matrix.columns < 0 || matrix.nonzeros < 0) return kCusparseInvalidValue;
  return MakeSparse(sparse_matrices, made, matrix);
}

std::int64_t Nonzeros(const SparseMatrix& matrix) {
  if (matrix.nonzeros_known) return matrix.nonzeros;
  return MadeUpCount(matrix.rows * matrix.columns);
}

int DescribeSparse(const void* matrix, std::int64_t* rows, std::int64_t* columns, std::int64_t* nonzeros,
                   void** offsets, void** indices, void** values, int* offsets_type, int* indices_type, int* base,
                   int* value_type) {
  const SparseMatrix* mine = sparse_matrices.Find(matrix);
  if (mine == nullptr) return kCusparseInvalidValue;
  Tell(rows, mine->rows);
  Tell(columns, mine->columns);
  if (nonzeros != nullptr) *nonzeros = Nonzeros(*mine);
  Tell(offsets, mine->offsets);
  Tell(indices, mine->indices);
  Tell(values, mine->values);
  Tell(offsets_type, mine->offsets_type);
  Tell(indices_type, mine->indices_type);
  Tell(base, mine->base);
  Tell(value_type, mine->value_type);
  return 0;
}

int SetPointers(void* matrix, const void* offsets, const void* indices, const void* values) {
  SparseMatrix* mine = sparse_matrices.Find(matrix);
  if (mine == nullptr) return kCusparseInvalidValue;
  mine->offsets = offsets;
  mine->indices = indices;
  mine->values = values;
  return 0;
}

int SetBatch(void* matrix, int batch) {
  SparseMatrix* mine = sparse_matrices.Find(matrix);
  if (mine == nullptr || batch < 1) return kCusparseInvalidValue;
  mine->batch = batch;
  return 0;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

// Each with its twin of constant pointers.
#define ASHLAR_COMPRESSED(name, format)                                                                                \
  ASHLAR_SURFACE int cusparseCreate##name(void** made, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros, \
                                          const void* offsets, const void* indices, const void* values,                \
                                          int offsets_type, int indices_type, int base, int value_type) {              \
    return MakeMatrix(made, {format, rows, columns, nonzeros, true, offsets, indices, values, offsets_type,            \
                             indices_type, base, value_type});                                                         \
  }
ASHLAR_COMPRESSED(Csr, SparseFormat::kCsr)
ASHLAR_COMPRESSED(ConstCsr, SparseFormat::kCsr)
ASHLAR_COMPRESSED(Csc, SparseFormat::kCsc)
ASHLAR_COMPRESSED(ConstCsc, SparseFormat::kCsc)

#define ASHLAR_COORDINATES(name)                                                                                       \
  ASHLAR_SURFACE int cusparseCreate##name(void** made, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros, \
                                          const void* row_of, const void* column_of, const void* values,               \
                                          int index_type, int base, int value_type) {                                  \
    return MakeMatrix(made, {SparseFormat::kCoo, rows, columns, nonzeros, true, row_of, column_of, values, index_type, \
                             index_type, base, value_type});                                                           \
  }
ASHLAR_COORDINATES(Coo)
ASHLAR_COORDINATES(ConstCoo)

#define ASHLAR_BLOCKS(name)                                                                                           \
  ASHLAR_SURFACE int cusparseCreate##name(void** made, std::int64_t block_rows, std::int64_t block_columns,           \
                                          std::int64_t blocks, std::int64_t rows, std::int64_t columns,               \
                                          const void* offsets, const void* indices, const void* values,               \
                                          int offsets_type, int indices_type, int base, int value_type, int) {        \
    return MakeMatrix(made, {SparseFormat::kBsr, block_rows * rows, block_columns * columns, blocks * rows * columns, \
                             true, offsets, indices, values, offsets_type, indices_type, base, value_type});          \
  }
ASHLAR_BLOCKS(Bsr)
ASHLAR_BLOCKS(ConstBsr)

#define ASHLAR_BLOCKED_ELL(name)                                                                                   \
  ASHLAR_SURFACE int cusparseCreate##name(void** made, std::int64_t rows, std::int64_t columns, std::int64_t,      \
                                          std::int64_t ell_columns, const void* indices, const void* values,       \
                                          int index_type, int base, int value_type) {                              \
    return MakeMatrix(made, {SparseFormat::kBlockedEll, rows, columns, rows * ell_columns, true, nullptr, indices, \
                             values, index_type, index_type, base, value_type});                                   \
  }
ASHLAR_BLOCKED_ELL(BlockedEll)
ASHLAR_BLOCKED_ELL(ConstBlockedEll)

#define ASHLAR_SLICED_ELL(name)                                                                                        \
  ASHLAR_SURFACE int cusparseCreate##name(void** made, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros, \
                                          std::int64_t, std::int64_t, const void* offsets, const void* indices,        \
                                          const void* values, int offsets_type, int indices_type, int base,            \
                                          int value_type) {                                                            \
    return MakeMatrix(made, {SparseFormat::kSlicedEll, rows, columns, nonzeros, true, offsets, indices, values,        \
                             offsets_type, indices_type, base, value_type});                                           \
  }
ASHLAR_SLICED_ELL(SlicedEll)
ASHLAR_SLICED_ELL(ConstSlicedEll)

ASHLAR_SURFACE int cusparseDestroySpMat(void* matrix) {
  return sparse_matrices.Destroy(matrix) ? 0 : kCusparseInvalidValue;
}
#define ASHLAR_GET_COMPRESSED(name)                                                                                    \
  ASHLAR_SURFACE int name(void* matrix, std::int64_t* rows, std::int64_t* columns, std::int64_t* nonzeros,             \
                          void** offsets, void** indices, void** values, int* offsets_type, int* indices_type,         \
                          int* base, int* value_type) {                                                                \
    return DescribeSparse(matrix, rows, columns, nonzeros, offsets, indices, values, offsets_type, indices_type, base, \
                          value_type);                                                                                 \
  }
ASHLAR_GET_COMPRESSED(cusparseCsrGet)
ASHLAR_GET_COMPRESSED(cusparseConstCsrGet)
ASHLAR_GET_COMPRESSED(cusparseCscGet)
ASHLAR_GET_COMPRESSED(cusparseConstCscGet)
#define ASHLAR_GET_COORDINATES(name)                                                                             \
  ASHLAR_SURFACE int name(void* matrix, std::int64_t* rows, std::int64_t* columns, std::int64_t* nonzeros,       \
                          void** row_of, void** column_of, void** values, int* index_type, int* base,            \
                          int* value_type) {                                                                     \
    return DescribeSparse(matrix, rows, columns, nonzeros, row_of, column_of, values, index_type, nullptr, base, \
                          value_type);                                                                           \
  }
ASHLAR_GET_COORDINATES(cusparseCooGet)
ASHLAR_GET_COORDINATES(cusparseConstCooGet)

ASHLAR_SURFACE int cusparseSpMatGetSize(void* matrix, std::int64_t* rows, std::int64_t* columns,
                                        std::int64_t* nonzeros) {
  return DescribeSparse(matrix, rows, columns, nonzeros, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
}
ASHLAR_SURFACE int cusparseSpMatGetFormat(void* matrix, int* format) {
  const SparseMatrix* mine = sparse_matrices.Find(matrix);
  if (mine == nullptr || format == nullptr) return kCusparseInvalidValue;
  *format = static_cast<int>(mine->format);
  return 0;
}
ASHLAR_SURFACE int cusparseSpMatGetIndexBase(void* matrix, int* base) {
  return DescribeSparse(matrix, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, base, nullptr);
}
ASHLAR_SURFACE int cusparseSpMatGetValues(void* matrix, void** values) {
  return DescribeSparse(matrix, nullptr, nullptr, nullptr, nullptr, nullptr, values, nullptr, nullptr, nullptr,
                        nullptr);
}
ASHLAR_SURFACE int cusparseConstSpMatGetValues(void* matrix, void** values) {
  return cusparseSpMatGetValues(matrix, values);
}
ASHLAR_SURFACE int cusparseSpMatSetValues(void* matrix, void* values) {
  SparseMatrix* mine = sparse_matrices.Find(matrix);
  if (mine == nullptr) return kCusparseInvalidValue;
  mine->values = values;
  return 0;
}
ASHLAR_SURFACE int cusparseCsrSetPointers(void* matrix, void* offsets, void* indices, void* values) {
  return SetPointers(matrix, offsets, indices, values);
}
ASHLAR_SURFACE int cusparseCscSetPointers(void* matrix, void* offsets, void* indices, void* values) {
  return SetPointers(matrix, offsets, indices, values);
}
ASHLAR_SURFACE int cusparseCooSetPointers(void* matrix, void* rows, void* columns, void* values) {
  return SetPointers(matrix, rows, columns, values);
}
ASHLAR_SURFACE int cusparseCsrSetStridedBatch(void* matrix, int batch, std::int64_t, std::int64_t) {
  return SetBatch(matrix, batch);
}
ASHLAR_SURFACE int cusparseCooSetStridedBatch(void* matrix, int batch, std::int64_t) { return SetBatch(matrix, batch); }
ASHLAR_SURFACE int cusparseBsrSetStridedBatch(void* matrix, int batch, std::int64_t, std::int64_t, std::int64_t) {
  return SetBatch(matrix, batch);
}
ASHLAR_SURFACE int cusparseSpMatGetStridedBatch(void* matrix, int* batch) {
  const SparseMatrix* mine = sparse_matrices.Find(matrix);
  if (mine == nullptr || batch == nullptr) return kCusparseInvalidValue;
  *batch = mine->batch;
  return 0;
}
// cusparseSpMatAttribute_t: 0 FILL_MODE, 1 DIAG_TYPE.
ASHLAR_SURFACE int cusparseSpMatSetAttribute(void* matrix, int attribute, const void* value, std::size_t bytes) {
  SparseMatrix* mine = sparse_matrices.Find(matrix);
  if (mine == nullptr || value == nullptr || bytes != sizeof(int)) return kCusparseInvalidValue;
  if (attribute != 0 && attribute != 1) return kCusparseInvalidValue;
  std::memcpy(attribute == 0 ? &mine->fill_mode : &mine->diagonal_type, value, sizeof(int));
  return 0;
}
ASHLAR_SURFACE int cusparseSpMatGetAttribute(void* matrix, int attribute, void* value, std::size_t bytes) {
  const SparseMatrix* mine = sparse_matrices.Find(matrix);
  if (mine == nullptr || value == nullptr || bytes != sizeof(int)) return kCusparseInvalidValue;
  if (attribute != 0 && attribute != 1) return kCusparseInvalidValue;
  std::memcpy(value, attribute == 0 ? &mine->fill_mode : &mine->diagonal_type, sizeof(int));
  return 0;
}

// cuSPARSE: dense matrices and vectors of the generic interface, and results whose size only a kernel could tell.
//
// Signatures: cusparse.h of CUDA 11.8, 12.4 and 13.0.

namespace ashlar::hollow {
namespace {

struct DenseMatrix {  // or a vector: of one column
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t step = 0;
  const void* values = nullptr;
  int value_type = 0;
  int order = 0;
  int batch = 1;
  std::int64_t batch_stride = 0;
};
constinit Objects<DenseMatrix> dense_matrices(0xE4);
constinit Objects<DenseMatrix> dense_vectors(0xE5);

struct SparseVector {
  std::int64_t size = 0;
  std::int64_t nonzeros = 0;
  const void* indices = nullptr;
  const void* values = nullptr;
  int index_type = 0;
  int base = 0;
  int value_type = 0;
};
constinit Objects<SparseVector> sparse_vectors(0xE6);

// A step of a product of sparse matrices: the first call of it asks for the size of a buffer.
int ProductStep(void* handle, void* result, std::size_t* bytes, const void* buffer) {
  const CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  SparseMatrix* matrix = sparse_matrices.Find(result);
  if (matrix == nullptr || bytes == nullptr) return kCusparseInvalidValue;
  matrix->nonzeros_known = false;
  if (buffer == nullptr) *bytes = kWorkspaceBytes;
  CountLaunch(mine->stream);
  return 0;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

#define ASHLAR_DENSE(name)                                                                                         \
  ASHLAR_SURFACE int cusparseCreate##name(void** made, std::int64_t rows, std::int64_t columns, std::int64_t step, \
                                          const void* values, int value_type, int order) {                         \
    if (rows < 0 || columns < 0) return kCusparseInvalidValue;                                                     \
    return MakeSparse(dense_matrices, made, DenseMatrix{rows, columns, step, values, value_type, order});          \
  }
ASHLAR_DENSE(DnMat)
ASHLAR_DENSE(ConstDnMat)
#define ASHLAR_DENSE_VECTOR(name)                                                                               \
  ASHLAR_SURFACE int cusparseCreate##name(void** made, std::int64_t size, const void* values, int value_type) { \
    if (size < 0) return kCusparseInvalidValue;                                                                 \
    return MakeSparse(dense_vectors, made, DenseMatrix{size, 1, size, values, value_type});                     \
  }
ASHLAR_DENSE_VECTOR(DnVec)
ASHLAR_DENSE_VECTOR(ConstDnVec)
ASHLAR_SURFACE int cusparseDestroyDnMat(void* matrix) {
  return dense_matrices.Destroy(matrix) ? 0 : kCusparseInvalidValue;
}
ASHLAR_SURFACE int cusparseDestroyDnVec(void* vector) {
  return dense_vectors.Destroy(vector) ? 0 : kCusparseInvalidValue;
}
ASHLAR_SURFACE int cusparseDnMatSetStridedBatch(void* matrix, int batch, std::int64_t stride) {
  DenseMatrix* mine = dense_matrices.Find(matrix);
  if (mine == nullptr || batch < 1) return kCusparseInvalidValue;
  mine->batch = batch;
  mine->batch_stride = stride;
  return 0;
}
ASHLAR_SURFACE int cusparseDnMatGetStridedBatch(void* matrix, int* batch, std::int64_t* stride) {
  const DenseMatrix* mine = dense_matrices.Find(matrix);
  if (mine == nullptr) return kCusparseInvalidValue;
  Tell(batch, mine->batch);
  Tell(stride, mine->batch_stride);
  return 0;
}
#define ASHLAR_GET_DENSE(name)                                                                                        \
  ASHLAR_SURFACE int name(void* matrix, std::int64_t* rows, std::int64_t* columns, std::int64_t* step, void** values, \
                          int* value_type, int* order) {                                                              \
    const DenseMatrix* mine = dense_matrices.Find(matrix);                                                            \
    if (mine == nullptr) return kCusparseInvalidValue;                                                                \
    Tell(rows, mine->rows);                                                                                           \
    Tell(columns, mine->columns);                                                                                     \
    Tell(step, mine->step);                                                                                           \
    Tell(values, mine->values);                                                                                       \
    Tell(value_type, mine->value_type);                                                                               \
    Tell(order, mine->order);                                                                                         \
    return 0;                                                                                                         \
  }
ASHLAR_GET_DENSE(cusparseDnMatGet)
ASHLAR_GET_DENSE(cusparseConstDnMatGet)
#define ASHLAR_DENSE_VALUES(kind, objects)                                         \
  ASHLAR_SURFACE int cusparse##kind##GetValues(void* object, void** values) {      \
    const DenseMatrix* mine = (objects).Find(object);                              \
    if (mine == nullptr || values == nullptr) return kCusparseInvalidValue;        \
    Tell(values, mine->values);                                                    \
    return 0;                                                                      \
  }                                                                                \
  ASHLAR_SURFACE int cusparseConst##kind##GetValues(void* object, void** values) { \
    return cusparse##kind##GetValues(object, values);                              \
  }                                                                                \
  ASHLAR_SURFACE int cusparse##kind##SetValues(void* object, void* values) {       \
    DenseMatrix* mine = (objects).Find(object);                                    \
    if (mine == nullptr) return kCusparseInvalidValue;                             \
    mine->values = values;                                                         \
    return 0;                                                                      \
  }
ASHLAR_DENSE_VALUES(DnMat, dense_matrices)
ASHLAR_DENSE_VALUES(DnVec, dense_vectors)

#define ASHLAR_SPARSE_VECTOR(name)                                                                                    \
  ASHLAR_SURFACE int cusparseCreate##name(void** made, std::int64_t size, std::int64_t nonzeros, const void* indices, \
                                          const void* values, int index_type, int base, int value_type) {             \
    if (size < 0 || nonzeros < 0 || nonzeros > size) return kCusparseInvalidValue;                                    \
    return MakeSparse(sparse_vectors, made,                                                                           \
                      SparseVector{size, nonzeros, indices, values, index_type, base, value_type});                   \
  }
ASHLAR_SPARSE_VECTOR(SpVec)
ASHLAR_SPARSE_VECTOR(ConstSpVec)
ASHLAR_SURFACE int cusparseDestroySpVec(void* vector) {
  return sparse_vectors.Destroy(vector) ? 0 : kCusparseInvalidValue;
}
// A dot product, to the host where the handle says so.
ASHLAR_SURFACE int cusparseSpVV(void* handle, int, void* x, void* y, void* result, int type, void*) {
  const CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  const bool sound = sparse_vectors.Find(x) != nullptr && dense_vectors.Find(y) != nullptr && CudaTypeBytes(type) != 0;
  if (!sound || result == nullptr) return kCusparseInvalidValue;
  CountLaunch(mine->stream);
  if (mine->pointer_mode == 0) ReadMadeUp(result, CudaTypeBytes(type));
  return 0;
}

// How many places a dense matrix has that are not zero, only a kernel could tell.
ASHLAR_SURFACE int cusparseDenseToSparse_analysis(void* handle, void* dense, void* sparse, int, void*) {
  const CusparseHandle* mine = FindCusparse(handle);
  if (mine == nullptr) return kCusparseNotInitialized;
  SparseMatrix* matrix = sparse_matrices.Find(sparse);
  if (matrix == nullptr || dense_matrices.Find(dense) == nullptr) return kCusparseInvalidValue;
  matrix->nonzeros_known = false;
  CountLaunch(mine->stream);
  return 0;
}
ASHLAR_SURFACE int cusparseSpGEMM_workEstimation(void* handle, int, int, const void*, void*, void*, const void*,
                                                 void* result, int, int, void*, std::size_t* bytes, void* buffer) {
  return ProductStep(handle, result, bytes, buffer);
}
ASHLAR_SURFACE int cusparseSpGEMM_compute(void* handle, int, int, const void*, void*, void*, const void*, void* result,
                                          int, int, void*, std::size_t* bytes, void* buffer) {
  return ProductStep(handle, result, bytes, buffer);
}
ASHLAR_SURFACE int cusparseSpGEMM_copy(void* handle, int, int, const void*, void*, void*, const void*, void* result,
                                       int, int, void*) {
  if (sparse_matrices.Find(result) == nullptr) return kCusparseInvalidValue;
  return LaunchCusparse(handle);
}
