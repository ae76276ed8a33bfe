// The types of CUDA's runtime and driver that calls of the hollow device take or give, declared by us, so that it
// builds where no toolkit is.
//
// Source: driver_types.h, vector_types.h and cuda.h of CUDA 11.8, 12.4 and 13.0; a field that a version lacks is named.
// Enumerations are ints, handles pointers. The test layouts_test compares them with the headers of a toolkit.
#ifndef ASHLAR_HOLLOW_ABI_CUDA_TYPES_H_
#define ASHLAR_HOLLOW_ABI_CUDA_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace ashlar::hollow::abi {

struct Dim3 {  // dim3
  unsigned x = 1, y = 1, z = 1;
};

struct Extent {  // cudaExtent: width in bytes or elements
  std::size_t width, height, depth;
};

struct Pos {  // cudaPos
  std::size_t x, y, z;
};

struct PitchedPtr {  // cudaPitchedPtr
  void* ptr;
  std::size_t pitch, xsize, ysize;
};

struct Memcpy3D {  // cudaMemcpy3DParms
  void* src_array;
  Pos src_pos;
  PitchedPtr src_ptr;
  void* dst_array;
  Pos dst_pos;
  PitchedPtr dst_ptr;
  Extent extent;
  int kind;
};

struct PointerAttributes {  // cudaPointerAttributes; 13 has eight reserved longs after it
  int type;                 // 0 unregistered, 1 host, 2 device, 3 managed
  int device;
  void* device_pointer;
  void* host_pointer;
};

struct Location {  // cudaMemLocation, CUmemLocation
  int type;        // 1: device
  int id;
};

struct AccessDesc {  // cudaMemAccessDesc, CUmemAccessDesc
  Location location;
  int flags;
};

struct PoolProps {  // cudaMemPoolProps, CUmemPoolProps; before 12.? `max_size` was reserved, and must be 0
  int allocation_type;
  int handle_types;
  Location location;
  void* win32_attributes;
  std::size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
};

struct AllocationProp {  // CUmemAllocationProp
  int type;
  int handle_types;
  Location location;
  void* win32_attributes;
  unsigned char compression;
  unsigned char gpu_direct_rdma;
  unsigned short usage;
  unsigned char reserved[4];
};

struct FuncAttributes {  // cudaFuncAttributes; the cluster fields since 12
  std::size_t shared_bytes, const_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared_bytes, carveout;
  int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, non_portable_cluster;
};

struct LaunchConfig {  // cudaLaunchConfig_t, since 11.8
  Dim3 grid, block;
  std::size_t shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

struct DriverLaunchConfig {  // CUlaunchConfig, since 11.8
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

struct IpcHandle {  // cudaIpcMemHandle_t, cudaIpcEventHandle_t, CUipcMemHandle, CUipcEventHandle
  unsigned char bytes[64];
};

struct Uuid {  // cudaUUID_t, CUuuid
  unsigned char bytes[16];
};

struct Memcpy2D {  // CUDA_MEMCPY2D
  std::size_t src_x, src_y;
  int src_type;  // CUmemorytype: 1 host, 2 device, 3 array, 4 unified
  const void* src_host;
  std::uint64_t src_device;
  void* src_array;
  std::size_t src_pitch;
  std::size_t dst_x, dst_y;
  int dst_type;
  void* dst_host;
  std::uint64_t dst_device;
  void* dst_array;
  std::size_t dst_pitch;
  std::size_t width_bytes, height;
};

struct HostNodeParams {  // cudaHostNodeParams, CUDA_HOST_NODE_PARAMS
  void (*function)(void*);
  void* user_data;
};

struct MemsetNodeParams {  // cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS
  void* dst;
  std::size_t pitch;
  unsigned value;
  unsigned element_bytes;
  std::size_t width, height;
};

struct MemAllocNodeParams {  // cudaMemAllocNodeParams, CUDA_MEM_ALLOC_NODE_PARAMS
  PoolProps props;
  const AccessDesc* access;
  std::size_t access_count;
  std::size_t bytes;
  void* address;  // answered
};

struct KernelNodeParams {  // cudaKernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v1
  void* function;
  Dim3 grid, block;
  unsigned shared_bytes;
  void** params;
  void** extra;
};

struct KernelNodeParamsV2 {  // CUDA_KERNEL_NODE_PARAMS_v2, since 12
  KernelNodeParams old;
  void* kernel;
  void* context;
};

struct DriverMemcpy3D {  // CUDA_MEMCPY3D
  std::size_t src_x, src_y, src_z, src_lod;
  int src_type;
  const void* src_host;
  std::uint64_t src_device;
  void* src_array;
  void* reserved0;
  std::size_t src_pitch, src_height;
  std::size_t dst_x, dst_y, dst_z, dst_lod;
  int dst_type;
  void* dst_host;
  std::uint64_t dst_device;
  void* dst_array;
  void* reserved1;
  std::size_t dst_pitch, dst_height;
  std::size_t width_bytes, height, depth;
};

struct InstantiateParams {  // cudaGraphInstantiateParams, CUDA_GRAPH_INSTANTIATE_PARAMS, since 12
  unsigned long long flags;
  void* upload_stream;
  void* error_node;  // answered
  int result;        // answered
};

struct UpdateResult {  // cudaGraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo, since 12
  int result;
  void* error_node;
  void* error_from_node;
};

struct MemcpyNodeParams {  // CUDA_MEMCPY_NODE_PARAMS
  int flags, reserved;
  void* context;
  DriverMemcpy3D copy;
};

struct RuntimeMemcpyNodeParams {  // cudaMemcpyNodeParams
  int flags;
  int reserved[3];
  Memcpy3D copy;
};

// A node of any kind. The driver's kernels and copies are its own.
template <typename Kernel, typename Copy>
struct AnyNodeParams {
  int type;  // CUgraphNodeType, cudaGraphNodeType
  int reserved[3];
  union {
    Kernel kernel;
    Copy copy;
    MemsetNodeParams fill;
    HostNodeParams host;
    void* child;
    void* event;
    MemAllocNodeParams memory;
    void* freed;
    long long all[29];
  };
  long long reserved_last;
};
using GraphNodeParams = AnyNodeParams<KernelNodeParamsV2, MemcpyNodeParams>;  // CUgraphNodeParams, since 12.2
using RuntimeGraphNodeParams = AnyNodeParams<KernelNodeParams, RuntimeMemcpyNodeParams>;  // cudaGraphNodeParams

struct ChannelFormat {  // cudaChannelFormatDesc: bits of each channel
  int x, y, z, w;
  int kind;  // 0 signed, 1 unsigned, 2 float
};

struct ArrayDescriptor {  // CUDA_ARRAY3D_DESCRIPTOR
  std::size_t width, height, depth;
  int format;
  unsigned channels, flags;
};

struct FlatArrayDescriptor {  // CUDA_ARRAY_DESCRIPTOR
  std::size_t width, height;
  int format;
  unsigned channels;
};

struct DevResource {  // CUdevResource, cudaDevResource, since 12.4. What follows the type is the driver's own
  int type;           // 1: multiprocessors
  int device;
  unsigned split;  // not 0: a part that this split gave
  unsigned char reserved[84];
  unsigned sm_count, least_of_part, multiple_of_part;
  unsigned char of_other_types[36];
};

}  // namespace ashlar::hollow::abi

#endif  // ASHLAR_HOLLOW_ABI_CUDA_TYPES_H_
