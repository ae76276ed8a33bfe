// NVTX's memory calls: how a program tells a tool, such as compute-sanitizer, which parts of a range it uses as memory
// of its own. Without a tool attached, or in a build without NVTX's headers (the CUDA toolkit has them), nothing
// happens.
//
// Source: NVTX API for Compute Sanitizer, reference manual; nvtx3/nvToolsExtMem.h of CUDA 13.0.
// Threads: any.
#ifndef ASHLAR_ALLOCATOR_DEVICE_NVTX_MEMORY_H_
#define ASHLAR_ALLOCATOR_DEVICE_NVTX_MEMORY_H_

#include <cstdint>
#include <optional>

namespace ashlar::device {

// Whether this build has NVTX's headers.
bool HasNvtx();

// A range that the tool watches as a pool.
enum class NvtxHeap : std::uint64_t {};

// The range is a pool from now on, in which nothing may be touched but registered regions. nullopt: no tool listens.
// The tool ends it by itself when the memory is freed.
std::optional<NvtxHeap> RegisterNvtxHeap(std::uint64_t address, std::uint64_t size_bytes);
// [address, address + size_bytes) of the pool may be touched.
void RegisterNvtxRegion(NvtxHeap heap, std::uint64_t address, std::uint64_t size_bytes);
// The region that begins at `address` may no longer be.
void UnregisterNvtxRegion(std::uint64_t address);

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_NVTX_MEMORY_H_
