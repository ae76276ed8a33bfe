// Implements the runtime's and the driver's calls on memory pools, once for both. Each is called with the process's
// lock held.
#ifndef ASHLAR_HOLLOW_SURFACES_CUDA_POOLS_H_
#define ASHLAR_HOLLOW_SURFACES_CUDA_POOLS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hollow/abi/cuda_types.h"
#include "hollow/books/error.h"
#include "hollow/launch/process.h"

namespace ashlar::hollow {

Error AllocateFromPool(Process& process, std::uint64_t pool, std::size_t bytes, void* stream, void** pointer);
// Of a graph's node: frees the pool's memory with the last graph that holds it, unless the program did.
std::shared_ptr<const void> GraphMemory(Process& process, std::uint64_t address);
Error FreeAsync(Process& process, void* pointer, void* stream);
void TrimPools(Process& process, int device);  // after something was synchronised
Error MakePool(Process& process, const abi::PoolProps& props, void** pool);
Error DestroyPool(Process& process, void* pool);
// Handles of pools are not addresses: their number, shifted, so that no stray pointer is one.
void* PoolHandle(std::uint64_t id);
Pool* PoolOf(Process& process, const void* handle);
Error SetPoolAttribute(Process& process, void* pool, int attribute, const void* value);
Error GetPoolAttribute(Process& process, void* pool, int attribute, void* value);
Error TrimPool(Process& process, void* pool, std::size_t keep_bytes);
Error SetPoolAccess(Process& process, void* pool, const abi::AccessDesc* access, std::size_t count);
Error GetPoolAccess(Process& process, void* pool, const abi::Location* location, int* flags);
Error DefaultPool(Process& process, int device, void** pool);
Error CurrentPool(Process& process, int device, void** pool);
Error SetCurrentPool(Process& process, int device, void* pool);
// What graphs' memory nodes hold, which is in the figures of the device's default pool; by cudaGraphMemAttributeType.
Error GetGraphMemory(Process& process, int device, int attribute, void* value);
Error ResetGraphMemory(Process& process, int device, int attribute);
Error TrimGraphMemory(Process& process, int device);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_CUDA_POOLS_H_
