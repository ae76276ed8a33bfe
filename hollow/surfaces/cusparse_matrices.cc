// cuSPARSE: the descriptors of sparse matrices of the generic interface.
//
// Signatures: cusparse.h of CUDA 11.8, 12.4 and 13.0.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hollow/surfaces/cusparse.h"
#include "hollow/surfaces/cusparse_parts.h"
#include "hollow/surfaces/surface.h"

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
