// The allocators that all doors of a process share, one for each GPU.
#ifndef ASHLAR_ALLOCATOR_C_PROCESS_H_
#define ASHLAR_ALLOCATOR_C_PROCESS_H_

#include "ashlar.h"

namespace ashlar::c {

bool IsOfProcess(const ashlar_allocator* allocator);

}  // namespace ashlar::c

#endif  // ASHLAR_ALLOCATOR_C_PROCESS_H_
