// Implements the runtime's and the driver's calls on memory, once for both. Each is called with the process's lock
// held.
#ifndef ASHLAR_HOLLOW_API_CUDA_MEMORY_H_
#define ASHLAR_HOLLOW_API_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hollow/abi/cuda_types.h"
#include "hollow/model/error.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {

inline std::uint64_t AddressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
inline void* PointerTo(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// The mode of the calling thread, for calls that a capture forbids (cudaThreadExchangeStreamCaptureMode).
CaptureMode& ThreadCaptureMode();
std::uint64_t ThreadNumber();
// That the call may be made now: no capture forbids it.
Error CheckUnsafe(Process& process);

// Makes sure that the current device has a context.
Error UseDevice(Process& process, int device);
// Of the current device's context.
Error GetLimit(Process& process, int limit, std::size_t* value);
Error SetLimit(Process& process, int limit, std::size_t value);

// 0 bytes give address 0 and no error, as cudaMalloc does.
Error Allocate(Process& process, std::size_t bytes, MemoryKind kind, void** pointer);
Error AllocatePitched(Process& process, std::size_t width, std::size_t height, void** pointer, std::size_t* pitch);
Error AllocateHost(Process& process, std::size_t bytes, unsigned flags, void** pointer);
Error RegisterHost(Process& process, void* pointer, std::size_t bytes, unsigned flags);
Error UnregisterHost(Process& process, void* pointer);
// Memory of the device or a pool; 0 is no error. What it held is forgotten.
Error Free(Process& process, void* pointer);
Error FreeHost(Process& process, void* pointer);

// The bytes are unknown from now on, and take no memory of the host.
void ForgetBytes(Process& process, std::uint64_t address, std::uint64_t bytes);

Error ExportMemory(Process& process, void* pointer, abi::IpcHandle* handle);
Error ImportMemory(Process& process, const abi::IpcHandle& handle, void** pointer);
Error CloseImport(Process& process, void* pointer);

Error GetMemoryInfo(Process& process, std::size_t* free_bytes, std::size_t* total_bytes);
Error ResetDevice(Process& process, int device);

// Implements the runtime's and the driver's calls on memory pools, once for both. Each is called with the process's
// lock held.

Error AllocateFromPool(Process& process, std::uint64_t pool, std::size_t bytes, void* stream, void** pointer);
// Of a graph's node: frees the pool's memory with the last graph that holds it, unless the program did.
std::shared_ptr<const void> GraphMemory(Process& process, std::uint64_t address);
Error FreeAsync(Process& process, void* pointer, void* stream);
void TrimPools(Process& process, int device);  // after something was synchronised
Error MakePool(Process& process, const abi::PoolProps& props, void** pool);
Error DestroyPool(Process& process, void* pool);
// Handles of pools are not addresses: their number, shifted, so that no stray pointer is one.
void* PoolHandle(std::uint64_t id);
PoolModel* PoolOf(Process& process, const void* handle);
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

#endif  // ASHLAR_HOLLOW_API_CUDA_MEMORY_H_
