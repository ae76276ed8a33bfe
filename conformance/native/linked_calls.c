// Calls of the CUDA runtime that this library has linked in, under names of its own:
// conformance/programs/try_two_runtimes.py.
//
//   cc -shared -fPIC -DMAJOR=12 -o liblinked.so.12 linked_calls.c libcudart_static.a -ldl -lrt -lpthread
#include <stddef.h>

#define OWN(name, parameters, arguments) \
  int name parameters;                   \
  int own_##name parameters { return name arguments; }

OWN(cudaMalloc, (void** pointer, size_t bytes), (pointer, bytes))
OWN(cudaFree, (void* pointer), (pointer))
OWN(cudaMemGetInfo, (size_t * unused, size_t* total), (unused, total))
OWN(cudaRuntimeGetVersion, (int* version), (version))
OWN(cudaGetDeviceProperties, (void* properties, int device), (properties, device))
#if MAJOR == 12
OWN(cudaGetDeviceProperties_v2, (void* properties, int device), (properties, device))
#endif
