// The messages that are one line of words each: frameworks, serving engines, native libraries, the memory of the host,
// and failures that do not say that memory ran out. One row a message.
#include <new>

#include "analyzer/formats/oom/oom_pattern.h"

namespace ashlar::formats::oom {
namespace {

constexpr FindingKind kFailure = FindingKind::kFailure, kWords = FindingKind::kWords, kWeak = FindingKind::kWeak,
                      kBeside = FindingKind::kBeside;

// Notes that the analysis goes by.
constexpr absl::string_view kHost = "host_memory", kHidden = "hidden_failure", kBuffer = "buffer_limit",
                            kCheck = "own_check", kCompile = "at_compile_time", kNoMemory = "not_out_of_memory";
constexpr absl::string_view kHostText = "memory of the host ran out, not the device's";
constexpr absl::string_view kKilledText =
    "something outside ended the process by SIGKILL: most often Linux or a container, as memory of the host ran out; "
    "the device kills nobody";
constexpr absl::string_view kBufferText = "one buffer may not be as large as this, however much memory is free";
constexpr absl::string_view kCheckText = "the engine's own check stopped it, before the device was asked";

constexpr MessageRow kRows[] = {
    // PyTorch over cudaMallocAsync.
    {"pt-async", kFailure,
     "Allocation on device {device} would exceed allowed memory. (out of memory){?} Currently allocated: {allocated} "
     "Requested: {tried} Device limit: {total} Free (according to CUDA): {free} PyTorch limit (set by user-supplied "
     "memory fraction): {limit}"},
    // As ComfyUI prints it, which keeps the first line.
    {"pt-async", kFailure, "Allocation on device {*8} This error means you ran out of memory"},
    {"pt-async", kFailure, "Allocation on device {*8} Got an OOM"},

    // torch.cuda.memory_summary(), since 2.0 with what was requested.
    {"pt-", kBeside,
     "PyTorch CUDA memory summary, device ID {device}{*300} CUDA OOMs: {*12}| cudaMalloc retries: "
     "{#cudaMalloc_retries}{*600} "
     "Allocated memory | {allocated} | {peak_allocated} |{*2000} Requested memory | {requested_memory} |{*1200} GPU "
     "reserved memory | {reserved} | {peak_reserved} |{*1200} Non-releasable memory | {unallocated_reserved} |"},
    {"pt-", kBeside,
     "PyTorch CUDA memory summary, device ID {device}{*300} CUDA OOMs: {*12}| cudaMalloc retries: "
     "{#cudaMalloc_retries}{*600} "
     "Allocated memory | {allocated} | {peak_allocated} |{*2000} GPU reserved memory | {reserved} | {peak_reserved} |"},

    {"pt-plain", kFailure, "Tried to allocate more than 1EB memory", "impossible_figure",
     "more than 1 EiB (tried) cannot be memory"},

    // Failures of PyTorch and those around it that call themselves something else.
    {"pt-nvml", kWords, "NVML_SUCCESS == {*60} INTERNAL ASSERT FAILED", kHidden,
     "the allocator asks NVML for the figures of its message, and NVML is not to be had here (MIG, Jetson, some "
     "containers)"},
    {"pt-nvml", kWords, "!handles_.at(i) INTERNAL ASSERT FAILED", kHidden,
     "an expandable segment could not map its pages, and the allocator stopped at its own check"},
    {"tensorflow", kWords, "Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR", kHidden,
     "a handle takes memory of the device, and none was left for it; a driver that does not fit the library says the "
     "same"},
    {"cudnn", kWords, "CUDNN_STATUS_NOT_SUPPORTED. This error may appear", kHidden,
     "cuDNN says this as well where it finds no memory for a workspace; accelerate and Lightning treat it as out of "
     "memory"},
    {"cudnn", kWords, "Unable to find a valid cuDNN algorithm to run convolution", kHidden,
     "every algorithm was tried and refused, as happens where no workspace fits"},
    {"cudnn", kWords, "FIND was unable to find an engine to execute this computation", kHidden,
     "every engine was tried and refused, as happens where no workspace fits"},
    {"cudnn", kWords, "GET was unable to find an engine to execute this computation", kHidden,
     "every engine was tried and refused, as happens where no workspace fits"},
    {"cuda-library", kWords, "CUBLAS_STATUS_NOT_INITIALIZED when calling `{$library_call}`", kHidden,
     "a handle takes memory of the device, and none was left for it; a device or driver that does not work says the "
     "same"},
    {"cuda-library", kWords, "CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate", kHidden,
     "a handle takes memory of the device, and none was left for it; a device or driver that does not work says the "
     "same"},
    {"cuda-library", kWords, "CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate", kHidden,
     "a handle takes memory of the device, and none was left for it; a device or driver that does not work says the "
     "same"},
    {"accelerate", kWords, "No executable batch size found, reached zero", kHidden,
     "find_executable_batch_size caught an out-of-memory error at every batch size down to 1, and showed none of them"},

    // Serving engines.
    {"vllm", kFailure, "CUDA out of memory occurred when warming up {*40} with {#dummy_requests} dummy requests",
     kCheck, kCheckText},
    {"vllm", kFailure,
     "Error in memory profiling. Initial free memory {free_at_first}, current free memory {free_then}", kNoMemory,
     "another process gave memory back while vLLM measured its own"},
    {"vllm", kFailure, "CUDA Error: out of memory at {*160} cumem_allocator.cpp", "sleep_mode",
     "the allocator of vLLM's sleep mode could not map its memory again"},
    {"vllm", kFailure,
     "model's max seq len ({#max_model_len}), {tried} KV cache is needed, which is larger than the available KV cache "
     "memory ({kv_cache})"},
    {"vllm", kBeside,
     "total_gpu_memory ({total}) x gpu_memory_utilization ({*12}) = {share}{?}{*120} model weights take {weights}; "
     "non_torch_memory takes {non_torch}; PyTorch activation peak memory takes {activations}; the rest of the memory "
     "reserved for KV Cache is {kv_cache}"},
    {"vllm", kBeside, "Initial free memory: {free_at_first}; Requested memory: {*12} (util), {share}"},
    {"vllm", kBeside, "Total non KV cache memory: {needs};{?}{*160} weights memory: {weights}"},
    {"vllm", kBeside, "Available KV cache memory: {kv_cache}"},
    {"vllm", kBeside, "Model loading took {weights}"},
    {"vllm", kBeside, "the estimated maximum model length is {#fitting_model_length}"},
    {"sglang", kWords, "Not enough memory. Please try to increase --mem-fraction-static", kCheck, kCheckText},
    {"sglang", kBeside, "Load weight end. {*120} avail mem={free_after_weights}, mem usage={weights}"},
    {"sglang", kBeside, "Load weight end. {*120} avail mem={free_after_weights}"},
    {"sglang", kBeside, "Load weight begin. avail mem={free_at_first}"},
    {"tensorrt-llm", kBeside,
     "Memory usage when calculating max tokens in paged kv cache: total: {total}, available: {free_before}"},
    {"torch-memory-saver", kFailure, "CUresult error result=2 file="},
    {"tensorrt-llm", kFailure, "CUDA runtime error in {*160}: out of memory"},
    {"tensorrt-llm", kFailure,
     "Executor creation failed due to insufficient GPU memory{?}{*120} Total GPU memory (GiB): {total:GiB} Free GPU "
     "memory before component creation attempt (GiB): {free:GiB}"},
    {"tgi", kWords, "Not enough memory to handle {#prefill_tokens} prefill tokens", kCheck, kCheckText},
    {"sglang", kFailure,
     "Failed to allocate memory for {*60} with size {tried} and alignment {*8} in AlignedAllocator"},

    // Runtimes and libraries over CUDA.
    {"onnxruntime", kFailure, "Failed to allocate memory for requested buffer of size {tried}"},
    {"onnxruntime", kFailure, "Available memory of {free} is smaller than requested bytes of {tried}", kCheck,
     "the arena's own limit stopped it"},
    {"onnxruntime", kFailure, "CUDA failure 2: out of memory ; GPU={device}"},
    {"tensorrt", kFailure, "Requested amount of GPU memory ({tried}) could not be allocated"},
    {"tensorrt", kFailure, "Requested amount of memory ({tried}) could not be allocated"},
    {"tensorrt", kFailure, "User allocator error allocating {tried}-byte buffer"},
    {"tensorrt", kFailure, "Error Code 1: Cuda Runtime (out of memory)"},
    {"tensorrt", kFailure, "OutOfMemory (Requested size was {tried}"},
    {"tensorrt", kFailure, "OutOfMemory (no further information)"},
    {"faiss", kFailure, "alloc fail type {*60} dev {device} space {*20} stream {*24} size {tried}"},
    {"faiss", kFailure, "details: Failed to cudaMalloc {tried}"},
    {"dali", kFailure, "CUDA runtime API error cudaErrorMemoryAllocation (2)"},
    {"dali", kFailure, "Can't allocate {tried} on device {device}"},
    {"dali", kFailure, "NVJPEG_STATUS_ALLOCATOR_FAILURE"},
    {"dali", kFailure, "CUDA driver API error CUDA_ERROR_OUT_OF_MEMORY (2)"},
    {"tf-bfc", kBeside, "Created device {*80} GPU:{device} with {limit} memory"},
    {"tensorflow", kWords, "RESOURCE_EXHAUSTED: failed to allocate memory"},
    {"tensorflow", kFailure, "device:GPU:{device}}} failed to allocate memory"},
    {"ctranslate2", kFailure, "CUDA failed with error out of memory"},
    {"mxnet", kFailure, "cudaMalloc retry failed: out of memory"},
    {"opencv", kFailure, "(-217:Gpu API call) out of memory in function"},
    {"physx", kFailure, "PxgCudaDeviceMemoryAllocator fail to allocate memory {tried}"},
    {"xgboost", kFailure,
     "Memory allocation error on worker {#worker}: {*120} out of memory{?}- Free memory: {free} - Requested memory: "
     "{tried}"},
    {"thrust", kFailure, "what(): std::bad_alloc: cudaErrorMemoryAllocation: out of memory"},
    {"thrust", kFailure, "std::bad_alloc: temporary_buffer::allocate: get_temporary_buffer failed"},
    {"kokkos-host", kFailure,
     "Kokkos failed to allocate memory for label \"{$label}\". Allocation using MemorySpace named \"Host\" failed with "
     "the following error: Allocation of size {*16} failed",
     kHost, kHostText},
    {"kokkos", kFailure,
     "Kokkos failed to allocate memory for label \"{$label}\". Allocation using MemorySpace named \"{$space}\" failed "
     "with the following error: Allocation of size {tried} failed"},
    {"amrex", kFailure, "Out of gpu memory. Free: {free} Asked: {tried}"},
    {"amrex", kFailure,
     "Arena out of memory!!! Bytes to allocate: {tried}{?}{*400} space allocated (MB): {reserved:MiB}{*20} space used "
     "(MB): {allocated:MiB}"},
    {"amrex", kFailure, "CUDA error 2 in file {*120} AMReX_Arena.cpp"},
    {"lightgbm", kWords, "[CUDA] out of memory"},
    {"pycuda", kFailure, "cuMemAlloc failed: out of memory"},
    {"spconv", kFailure, "cuda failed with error 2 out of memory"},
    {"carb", kWords, "Out of GPU memory allocating resource{?}{*600} failed for the device: {device}"},
    {"blender", kWords, "System is out of GPU memory"},
    {"blender", kBeside, "| Mem:{allocated}, Peak:{peak} |"},
    {"warp", kFailure,
     "Warp CUDA error 2: out of memory{?}{*160} Failed to allocate {tried} on device 'cuda:{device}'"},
    {"warp", kBeside, "\"cuda:{device}\" : \"{*80}\" ({total}, sm_"},
    {"warp", kFailure, "Memory allocation failed on device: {*12} for {tried}"},
    {"warp", kFailure, "Failed to allocate {tried} on device 'cuda:{device}'"},
    {"cuda-jl", kFailure,
     "Out of GPU memory trying to allocate {tried}{?} Effective GPU memory usage: {*12} ({device_used}/{total}) Memory "
     "pool usage: {allocated} ({reserved} reserved)"},
    {"nvhpc", kFailure,
     "Out of memory allocating {tried} of device memory{?}{*80} total/free CUDA memory: {total}/{free}{*40} Present "
     "table dump for device[{*4}]: NVIDIA {*40} GPU {device},"},
    {"cuda-jl", kWords, "Out of GPU memory{*4}Stacktrace:"},
    {"nvhpc", kFailure, "call to cuMemAlloc returned error 2: Out of memory"},
    {"nvhpc", kFailure, "call to cuMemAlloc returned error 2 (CUDA_ERROR_OUT_OF_MEMORY): Out of memory"},
    {"ggml", kFailure, "CUDA error: out of memory current device: {device}, in function"},
    {"ggml", kFailure, "ROCm error: out of memory current device: {device}, in function"},
    {"ggml", kFailure, "MUSA error: out of memory current device: {device}, in function"},
    {"ggml", kWords, "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"},
    {"mlx", kFailure, "[METAL] Command buffer execution failed: Insufficient Memory"},
    {"mlx", kFailure,
     "[metal::malloc] Attempting to allocate {tried} which is greater than the maximum allowed buffer size of {limit}",
     kBuffer, kBufferText},
    {"ggml", kFailure,
     "ggml_vulkan: Device memory allocation of size {tried} failed. ggml_vulkan: Requested buffer size exceeds",
     kBuffer, kBufferText},
    {"ggml", kFailure,
     "ggml_vulkan: Device memory allocation of size {tried} failed.{?}{*160} unable to allocate Vulkan{device} buffer"},
    {"ggml", kFailure, "can't allocate {tried} of memory on device {*160} unable to allocate SYCL{device} buffer"},
    {"ggml", kFailure, "can't allocate {tried} of memory on device{?}{device}"},
    {"ggml", kBeside, "offloaded {#layers_on_device}/{#layers_of_model} layers to GPU"},
    {"ggml", kBeside, "n_layer = {#repeating_layers}"},
    {"ggml", kBeside, "-ngl {#layers_asked}"},
    {"ggml", kBeside, "--n-gpu-layers {#layers_asked}"},
    {"ggml", kBeside, "--gpu-layers {#layers_asked}"},
    {"ggml", kBeside, "error loading model: unable to allocate", "weights_of_model",
     "what could not be had are the model's weights"},
    {"ggml", kBeside, "recommendedMaxWorkingSetSize = {limit:MB10} MB"},
    {"ggml", kBeside, "using device CUDA{device} ({*80}) - {free} free"},
    {"ggml", kBeside, "using device ROCm{device} ({*80}) - {free} free"},
    {"ggml", kBeside, "using device Vulkan{device} ({*80}) - {free} free"},
    {"ggml", kBeside, "using device SYCL{device} ({*80}) - {free} free"},
    {"ggml", kFailure, "ggml_metal: error: failed to allocate buffer, size = {tried}"},

    // XLA.
    {"jax-xla", kFailure,
     "Ran out of memory in memory space {$space}. Used {needs} of {total} {*12}. Exceeded {*20} capacity by "
     "{short}.{?}{*2000} Largest program allocations in {*600} Size: {largest} {*400} source_file=\"{$largest_file}\" "
     "source_line={#largest_line}",
     kCompile, "the program was refused when it was compiled: nothing had run"},
    {"jax-xla", kFailure,
     "Attempting to allocate {tried}. That was not possible. There are {free} free.{?};({$memory_space})"},
    {"jax-xla", kFailure,
     "Attempting to reserve {tried} at the bottom of memory. That was not possible. There are {free} free{?}, {*12} "
     "reserved, and {reservable} reservable.{*4} HBM capacity {total}: Top-of-Memory reserved: {*12} "
     "({reserved_at_the_top}) Currently allocated: {*12} ({allocated}) Program requirement: {*12} ({program})"},
    {"jax-xla", kBeside, "Exception in device=TPU:{device}: RESOURCE_EXHAUSTED"},
    {"jax-xla", kFailure, "Allocation (size={tried}) would exceed memory (size={total}) :: {$space}[", kCompile,
     "the program was refused when it was compiled: nothing had run"},
    {"jax-xla", kBeside, "only reduced to {*12}({program_needs})"},

    // Devices other than CUDA's.
    {"pt-xpu", kFailure,
     "Current platform can NOT allocate memory block with size larger than {limit}! Tried to "
     "allocate {tried}{?}(GPU {device};{total} total capacity",
     kBuffer, kBufferText},
    {"pt-xpu", kFailure, "backend failed with error: {*4} (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"},
    {"pt-xpu", kFailure, "UR backend returns:{*4} (UR_RESULT_ERROR_OUT_OF_RESOURCES)"},
    {"pt-xpu", kFailure, "UR backend returns:{*4} (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"},
    {"pt-xpu", kFailure, "Native API returns: {*4} (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"},
    {"pt-xpu", kFailure, "Native API returns: {*4} (PI_ERROR_OUT_OF_RESOURCES)"},
    {"pt-mps", kWords, "Invalid buffer size: {tried}", kBuffer, kBufferText},
    {"pt-mps", kFailure, "Error: total bytes of NDArray > 2**32", kBuffer, kBufferText},
    {"hpu", kFailure, "MODULE:PT_DEVMEM Allocation failed for size::{tried}"},

    // The memory of the host.
    {"cpu-allocator", kFailure, "DefaultCPUAllocator: not enough memory: you tried to allocate {tried}", kHost,
     kHostText},
    {"cpu-allocator", kFailure, "DefaultCPUAllocator: can't allocate memory: you tried to allocate {tried}", kHost,
     kHostText},
    {"numpy", kFailure, "Unable to allocate {tried} for an array with shape", kHost, kHostText},
    {"cpp-new", kFailure, "terminate called after throwing an instance of 'std::bad_alloc'", kHost, kHostText},
    {"kernel-cgroup", kFailure,
     "Memory cgroup out of memory: Killed process {#pid} ({$name}) total-vm:{total_vm}, anon-rss:{anon_rss}", kHost,
     kHostText},
    {"kernel-cgroup", kFailure, "Memory cgroup out of memory: Kill process {#pid}", kHost, kHostText},
    {"kernel", kFailure, "Out of memory: Killed process {#pid} ({$name}) total-vm:{total_vm}, anon-rss:{anon_rss}",
     kHost, kHostText},
    {"kernel", kFailure, "Out of memory: Kill process {#pid}", kHost, kHostText},
    {"kernel-cgroup", kFailure, "oom-kill:constraint=CONSTRAINT_MEMCG", kHost, kHostText},
    {"kernel", kFailure, "oom-kill:constraint=CONSTRAINT_NONE", kHost, kHostText},
    {"cgroup", kWords, "Reason: OOMKilled{?}{*400} Limits: {*60} memory: {limit}", kHost, kHostText},
    {"cgroup", kFailure, "\"reason\": \"OOMKilled\"", kHost, kHostText},
    {"slurm", kFailure, "Detected {#kills} oom_kill event{?}{*4} in StepId={#job}", kHost, kHostText},
    {"slurm", kFailure, "Detected {#kills} oom-kill event{?}{*4} in StepId={#job}", kHost, kHostText},
    {"slurm", kFailure, "exceeded memory limit ({held} > {limit}), being killed", kHost, kHostText},
    {"slurm", kWords, "Exceeded job memory limit", kHost, kHostText},
    {"commit-limit", kWords, "The paging file is too small for this operation to complete", kHost, kHostText},
    {"host-refusal", kWords, "[Errno 12] Cannot allocate memory", kHost, kHostText},
    {"shared-memory", kWords, "It is possible that dataloader's workers are out of shared memory", kHost, kHostText},
    {"shared-memory", kWords, "insufficient shared memory (shm)", kHost, kHostText},
    {"ray", kWords,
     "ray.exceptions.OutOfMemoryError{?}{*400} memory used={task}) was running was {node_used} / {total}", kHost,
     kHostText},
    {"lightgbm", kWords, "Out of Host Memory", kHost, kHostText},
    {"dataloader", kWords, "is killed by signal: Killed.", kHost, kKilledText},
    {"elastic", kWords, "failed (exitcode: -9) local_rank: {#local_rank} (pid: {#pid})", kHost, kKilledText},
    {"elastic", kWords, "exitcode : -9 (pid: {#pid})", kHost, kKilledText},
    {"elastic", kWords, "Signal 9 (SIGKILL) received by PID {#pid}", kHost, kKilledText},
    {"ollama", kBeside,
     "model request too large for system\" requested=\"{tried}\" available=\"{available}\" total=\"{total}\" "
     "free=\"{free}\""},
    {"ollama", kFailure, "model requires more system memory ({tried}) than is available ({available})", kHost,
     kHostText},
    {"opencv-host", kFailure, "(-4:Insufficient memory) Failed to allocate {tried}", kHost, kHostText},

    // Native programs, by the name of the error alone.
    {"native-cuda", kFailure, "CUDA error at {$call_at} code=2(cudaErrorMemoryAllocation) \"{$library_call}\""},
    {"native-cuda", kFailure, "code=2(cudaErrorMemoryAllocation) \"{$library_call}\""},
    {"native-cuda", kFailure, "GPUassert: out of memory"},
    {"native-cuda", kWeak, "cudaErrorMemoryAllocation"},
    {"native-cuda", kWeak, "CUDA_ERROR_OUT_OF_MEMORY"},
    {"native-hip", kWeak, "hipErrorOutOfMemory"},
    {"native-cuda", kWeak, "CUDA Runtime Error: out of memory"},
};

}  // namespace

const std::vector<Pattern>& Patterns() {
  static const auto& patterns = *new std::vector<Pattern>(std::begin(kRows), std::end(kRows));
  return patterns;
}

}  // namespace ashlar::formats::oom
