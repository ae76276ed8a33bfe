// Out-of-memory messages retyped from public threads, one or more of each family, so that the tests of their reader run
// without any other data. White space may differ from the original; figures are real.
#ifndef ASHLAR_TESTS_ANALYZER_FORMATS_OOM_MESSAGES_H_
#define ASHLAR_TESTS_ANALYZER_FORMATS_OOM_MESSAGES_H_

namespace ashlar::oom_messages {

inline constexpr char kTabularT4[] =
    "RuntimeError: CUDA out of memory.Tried to allocate 2.69 GiB (GPU 0; 14.76 GiB total capacity; 12.32 GiB already "
    "allocated; 835.88 MiB free; 13.06 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
    "setting max_split_size_mb to avoid fragmentation. See documentation for Memory Management and "
    "PYTORCH_CUDA_ALLOC_CONF";
inline constexpr char kCutV100[] =
    "RuntimeError: CUDA out of memory. Tried to allocate 220.00 MiB (GPU 0; 15.78 GiB total capacity; 13.16 GiB "
    "already "
    "allocated; 201.44 MiB free; 14.44 GiB reserved in total by PyTorch";
inline constexpr char kColabBert[] =
    "RuntimeError: CUDA out of memory. Tried to allocate 24.00 MiB (GPU 0; 7.43 GiB total capacity; 5.42 GiB already "
    "allocated; 8.94 MiB free; 5.79 GiB reserved in total by PyTorch)";
inline constexpr char kCached[] =
    "RuntimeError: CUDA out of memory. Tried to allocate 1024.00 KiB (GPU 0; 11.17 GiB total capacity; 10.90 GiB "
    "already "
    "allocated; 576.00 KiB free; 30.96 MiB cached)";
inline constexpr char kAllowed[] =
    "RuntimeError: CUDA out of memory. Tried to allocate 37.25 GiB (GPU 0; 23.68 GiB total capacity; 192.29 MiB "
    "already "
    "allocated; 15.79 GiB free; 2.37 GiB allowed; 5.05 GiB reserved in total by PyTorch)";
inline constexpr char kTypo[] =
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 496.00 MiB. GPU 0 has a total capacty of 14.75 "
    "GiB "
    "of which 235.06 MiB is free. Process 20398 has 14.52 GiB memory in use. Of the allocated memory 14.06 GiB is "
    "allocated by PyTorch, and 330.42 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory "
    "is "
    "large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and "
    "PYTORCH_CUDA_ALLOC_CONF";
inline constexpr char kNeighbours[] =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 86.00 MiB. GPU 0 has a total capacity of 23.64 GiB "
    "of "
    "which 264.00 MiB is free. Process 2086283 has 419.48 MiB memory in use. Including non-PyTorch memory, this "
    "process "
    "has 8.04 GiB memory in use. Process 2797307 has 14.85 GiB memory in use. Of the allocated memory 7.63 GiB is "
    "allocated by PyTorch, and 40.11 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
    "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
    "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
inline constexpr char kCommentWsl[] =
    "# torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.74 GiB.\n"
    "# GPU 0 has a total capacity of 4.00 GiB of which 0 bytes is free.\n"
    "# Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use.\n"
    "# Process 74390 has 17179869184.00 GiB memory in use. Of the allocated memory 16.20 GiB is allocated by PyTorch,\n"
    "# and 844.14 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting\n"
    "# PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n"
    "#  See documentation for Memory Management  "
    "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
inline constexpr char kPrivatePools[] =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 60.00 MiB. \n"
    " GPU 1 has a total capacity of 79.19 GiB of which 39.06 MiB is free. \n"
    " Including non-PyTorch memory, this process has 79.14 GiB memory in use. \n"
    " Of the allocated memory 72.36 GiB is allocated by PyTorch, \n"
    " with 436.00 MiB allocated in private pools (e.g., CUDA Graphs), \n"
    " and 71.59 MiB is reserved by PyTorch but unallocated.";
inline constexpr char kCapacityAllowed[] =
    "OutOfMemoryError: CUDA out of memory. Tried to allocate 996.00 MiB. GPU 0 has a total capacity of 44.43 GiB of "
    "which "
    "9.06 GiB is free. Process 2102129 has 17.54 GiB memory in use. Including non-PyTorch memory, this process has "
    "17.81 "
    "GiB memory in use. 17.69 GiB allowed; Of the allocated memory 17.44 GiB is allocated by PyTorch, and 59.88 MiB is "
    "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation. See documentation for Memory Management "
    "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
inline constexpr char kRenamedConf[] =
    "(original error: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total capacity of 31.36 GiB of "
    "which "
    "53.06 MiB is free. Including non-PyTorch memory, this process has 31.30 GiB memory in use. Of the allocated "
    "memory "
    "30.35 GiB is allocated by PyTorch, and 319.13 MiB is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
    "documentation for Memory Management  "
    "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables))";
inline constexpr char kHip[] =
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 3.31 GiB. GPU 0 has a total capacity of 128.00 GiB "
    "of "
    "which 780.24 MiB is free. Of the allocated memory 57.70 GiB is allocated by PyTorch, and 75.82 MiB is reserved by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
    "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
inline constexpr char kXpu[] =
    "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 32.00 GiB. GPU 0 has a total capacity of 11.59 GiB "
    "of "
    "which 9.01 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by "
    "PyTorch "
    "but unallocated. Please use `empty_cache` to release all unoccupied cached memory.";
inline constexpr char kNpu[] =
    "RuntimeError: NPU out of memory. Tried to allocate 22.00 MiB (NPU 0; 60.97 GiB total capacity; 10.24 GiB already "
    "allocated; 10.24 GiB current active; 19.52 MiB free; 10.65 GiB reserved in total by PyTorch) If reserved memory "
    "is "
    ">> allocated memory try setting max_split_size_mb to avoid fragmentation.";
inline constexpr char kMps[] =
    "MPS backend out of memory (MPS allocated: 7.43 GB, other allocations: 24.46 GB, max allowed: 32.00 GB). Tried to "
    "allocate 129.21 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory "
    "allocations (may cause system failure).";
inline constexpr char kPlain[] =
    "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API "
    "call, "
    "so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1";
inline constexpr char kRuntimeError[] =
    "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58";
inline constexpr char kBfcRounded[] =
    "W external/local_xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to "
    "allocate 34.10MiB (rounded to 35758080)requested by op moments/SquaredDifference";
inline constexpr char kBfcWarning[] =
    "W tensorflow/core/common_runtime/bfc_allocator.cc:217] Ran out of memory trying to allocate 1.17GiB. The caller "
    "indicates that this is not a failure, but may mean that there could be performance gains if more memory is "
    "available.";
inline constexpr char kBfcShape[] =
    "ResourceExhaustedError: OOM when allocating tensor with shape[16,12,512,512] and type float on "
    "/job:localhost/replica:0/task:0/device:GPU:2 by allocator GPU_2_bfc";
inline constexpr char kBfcDevice[] =
    "failed to allocate 17.79G (19104890880 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory";
inline constexpr char kJaxTable[] =
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 "
    "bytes.\n"
    "BufferAssignment OOM Debugging.\nBufferAssignment stats:\n             parameter allocation:  372.76MiB\n"
    "              constant allocation:    48.5KiB\n        maybe_live_out allocation:    9.64GiB\n"
    "     preallocated temp allocation:    4.44GiB\n                 total allocation:   14.44GiB\n"
    "              total fragmentation:  680.30MiB (4.60%)";
inline constexpr char kJax[] =
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 20029400304 bytes.";
inline constexpr char kCupyOld[] =
    "cupy.cuda.memory.OutOfMemoryError: out of memory to allocate 1073741824 bytes (total 12373894656 bytes)";
inline constexpr char kCupyLimit[] =
    "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 761,856,000 bytes\n(allocated so far: 6,104,426,496 "
    "bytes, limit set to: 6,531,579,904 bytes)";
inline constexpr char kCupyNoLimit[] =
    "OutOfMemoryError | Out of memory allocating 285,296,072 bytes (allocated so far: 7,381,975,040 bytes, limit set "
    "to: "
    "18,446,744,073,709,551,615 bytes).";
inline constexpr char kRmm[] =
    "MemoryError: std::bad_alloc: CUDA error at: ../include/rmm/mr/device/cuda_memory_resource.hpp:68: "
    "cudaErrorMemoryAllocation out of memory";
inline constexpr char kRmmPool[] =
    "MemoryError: std::bad_alloc: RMM failure at:/src/rmm/include/rmm/mr/device/pool_memory_resource.hpp:179: Maximum "
    "pool size exceeded";
inline constexpr char kPaddle[] =
    "Out of memory error on GPU 0. Cannot allocate 3.621826GB memory on GPU 0, 21.184814GB memory has been allocated "
    "and "
    "available memory is only 2.814575GB. Please check whether there is any other process using GPU 0.";
inline constexpr char kGgml[] =
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144817.04 MiB on device 0: cudaMalloc failed: out of "
    "memory\n"
    "alloc_tensor_range: failed to allocate CUDA0 buffer of size 151851674624";
inline constexpr char kNumba[] =
    "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY";

inline constexpr const char* kAll[] = {
    kTabularT4,    kCutV100,         kColabBert,   kCached,   kAllowed,   kTypo,     kNeighbours, kCommentWsl,
    kPrivatePools, kCapacityAllowed, kRenamedConf, kHip,      kXpu,       kNpu,      kMps,        kPlain,
    kRuntimeError, kBfcRounded,      kBfcWarning,  kBfcShape, kBfcDevice, kJaxTable, kJax,        kCupyOld,
    kCupyLimit,    kCupyNoLimit,     kRmm,         kRmmPool,  kPaddle,    kGgml,     kNumba};

}  // namespace ashlar::oom_messages

#endif  // ASHLAR_TESTS_ANALYZER_FORMATS_OOM_MESSAGES_H_
