#include "ashlar.h"

static_assert(ASHLAR_SONAME == ASHLAR_ABI_VERSION, "allocator/c/CMakeLists.txt has the number of include/ashlar.h");

extern "C" {

uint32_t ashlar_abi_version(void) { return ASHLAR_ABI_VERSION; }
const char* ashlar_version(void) { return ASHLAR_VERSION; }

}  // extern "C"
