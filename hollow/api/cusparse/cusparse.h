// Shared by the files of cuSPARSE: the handle, and descriptors of matrices and vectors.
//
// Thread rule: any thread; one handle or descriptor is used by one thread at a time, as cuSPARSE asks.
#ifndef ASHLAR_HOLLOW_API_CUSPARSE_CUSPARSE_H_
#define ASHLAR_HOLLOW_API_CUSPARSE_CUSPARSE_H_

#include <cstdint>

#include "hollow/api/objects.h"
#include "hollow/api/surface.h"

namespace ashlar::hollow {

// cusparseStatus_t.
inline constexpr int kCusparseNotInitialized = 1;

struct CusparseHandle {
  void* stream = nullptr;
  int pointer_mode = 0;  // CUSPARSE_POINTER_MODE_HOST
};
CusparseHandle* FindCusparse(const void* handle);

// cusparseFormat_t.
enum class SparseFormat : int { kCsr = 1, kCsc = 2, kCoo = 3, kBlockedEll = 5, kBsr = 6, kSlicedEll = 7 };

struct SparseMatrix {
  SparseFormat format = SparseFormat::kCsr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t nonzeros = 0;
  bool nonzeros_known = true;     // false: only a kernel could have counted them
  const void* offsets = nullptr;  // or the rows of each
  const void* indices = nullptr;
  const void* values = nullptr;
  int offsets_type = 0;
  int indices_type = 0;
  int base = 0;
  int value_type = 0;
  int fill_mode = 0;
  int diagonal_type = 0;
  int batch = 1;
};
extern Objects<SparseMatrix> sparse_matrices;

// A count that only a kernel could have made: a made-up value from 0 to `most`.
std::int64_t MadeUpCount(std::int64_t most);

// Small parts of the files of cuSPARSE's generic interface: an object is made, and a part of it given where it is asked
// for.

template <class T>
int MakeSparse(Objects<T>& objects, void** made, const T& object) {
  if (made == nullptr) return kCusparseInvalidValue;
  *made = objects.Make(object);
  return 0;
}
template <class T, class Value>
void Tell(Value* to, const T& from) {
  if (to != nullptr) *to = static_cast<Value>(from);
}
inline void Tell(void** to, const void* from) {
  if (to != nullptr) *to = const_cast<void*>(from);
}

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUSPARSE_CUSPARSE_H_
