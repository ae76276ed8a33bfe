// Small parts of the files of cuSPARSE's generic interface: an object is made, and a part of it given where it is asked
// for.
#ifndef ASHLAR_HOLLOW_SURFACES_CUSPARSE_PARTS_H_
#define ASHLAR_HOLLOW_SURFACES_CUSPARSE_PARTS_H_

#include "hollow/surfaces/cusparse.h"

namespace ashlar::hollow {

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

#endif  // ASHLAR_HOLLOW_SURFACES_CUSPARSE_PARTS_H_
