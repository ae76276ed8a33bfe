// NVIDIA's own library of the process, for the few questions that need no device: which version it is, what a status
// is called. The hollow device answers for the version that the program brought.
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_API_REAL_LIBRARY_H_
#define ASHLAR_HOLLOW_API_REAL_LIBRARY_H_

#include <cstdint>
#include <string>

namespace ashlar::hollow {

// The function of this name in the loaded library whose file name starts with `file`, as "libcublas.so."; null where no
// such library is loaded. Looks each time.
void* RealFunction(const char* file, const char* name);

// Its file; empty where no such library is loaded.
std::string RealPath(const char* file);

// The number after "libX.so." of the loaded library, as 8 of libcudnn.so.8; 0 where none is loaded.
int RealMajor(const char* file);

// What GetProperty(type, &value) of a library answers, type 0 to 2 being major, minor and patch of library_types.h;
// `otherwise` (major * 10000 + minor * 100 + patch) where the library is not loaded. Returns false for another type.
bool RealProperty(const char* file, const char* name, int otherwise, int type, int* value);

// The text of a status by the library's own function; `otherwise` where it is not loaded.
const char* RealText(const char* file, const char* name, int status, const char* otherwise);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_REAL_LIBRARY_H_
