// Advice for who raised a message: the settings of that library that move memory, and how to learn more there.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "analyzer/analyses/message/oom_message_evidence.h"

namespace ashlar::analyses::oom {
namespace {

using formats::OomMessage;

constexpr absl::string_view kSnapshotStep =
    "To see which tensors hold the memory and which pin segments, record a snapshot: the first line at the start of "
    "the program, the second right after the failure. Then run ashlar explain snapshot.pickle.";
constexpr absl::string_view kRecordStep =
    "To see which tensors hold the memory and which pin segments, have the run recorded. The first line changes "
    "nothing "
    "in the program. With the second in it, the traceback of a failure ends with the answer. The last two need PyTorch "
    "alone: one at the program's start, one right after the failure, and then ashlar explain snapshot.pickle.";
constexpr absl::string_view kStatisticsStep =
    "This message cannot tell which arrays hold the memory. Have the allocator tell it: run the line below right "
    "before the step that fails, and read it together with this message.";
constexpr absl::string_view kOldTorchStep =
    "To see which tensors hold the memory and which pin segments, run the program under PyTorch 2.1 or later (this "
    "version records no snapshots), the first line at its start, the second right after the failure. Then run ashlar "
    "explain snapshot.pickle.";
constexpr absl::string_view kNativeStep =
    "This message cannot tell which lines hold the memory. Have every call to the device written down (first line), or "
    "run the program over Ashlar's allocator (second); no change of the program is needed.";
constexpr absl::string_view kHostStep =
    "To see which processes hold the host's memory, run the lines below while the program grows.";
constexpr absl::string_view kTorchLevers =
    "what other settings would have done is not in this message: it needs a recorded snapshot";
constexpr absl::string_view kHostLevers =
    "no setting of the device helps: give the job more memory of the host, or hold less there (workers, pinned "
    "memory, data sets and checkpoints read whole)";

std::vector<std::string> TorchLines() {
  return {"torch.cuda.memory._record_memory_history(max_entries=100000)",
          "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"};
}

std::vector<std::string> RecordLines() {
  std::vector<std::string> out = {"ashlar record -- python YOUR_PROGRAM.py", "import ashlar_gpu; ashlar_gpu.on_oom()"};
  for (const std::string& line : TorchLines()) out.push_back(line);
  return out;
}

std::vector<std::string> NativeLines() { return {"ashlar record -- ./program", "ashlar run-under -- ./program"}; }

std::vector<std::string> HostLines() { return {"ps -eo pid,rss,args --sort=-rss | head", "free -m"}; }

struct MessageAdvice {
  absl::string_view family;  // of messages, by its beginning
  absl::string_view levers;  // what would help there
  absl::string_view step;
  std::vector<std::string> lines;
};

// As the projects' own documentation names them. The first that fits counts.
const std::vector<MessageAdvice>& AdviceTable() {
  static const auto& table = *new std::vector<MessageAdvice>{
      {"pt-npu",
       "hold less: a smaller batch with gradient accumulation, recomputation, bf16; "
       "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True where much is reserved and not allocated",
       kSnapshotStep,
       {"torch.npu.memory._record_memory_history(max_entries=100000)",
        "torch.npu.memory._dump_snapshot(\"snapshot.pickle\")"}},
      {"pt-cached", kTorchLevers, kOldTorchStep, TorchLines()},
      {"pt-pre-1.0", kTorchLevers, kOldTorchStep, TorchLines()},
      {"pt-xpu",
       "hold less: a smaller batch with gradient accumulation, gradient checkpointing, bf16; torch.xpu.empty_cache() "
       "where much is reserved and not allocated",
       kStatisticsStep,
       {"print(torch.xpu.memory_stats())"}},
      {"pt-mps",
       "take a smaller batch or smaller arrays; close what else uses this memory, which the device shares with the "
       "host; "
       "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit, and the system may then swap or fail",
       kStatisticsStep,
       {"print(torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory())"}},
      {"pt-async",
       "hold less, or offload more of the models; PyTorch's own allocator (backend:native) can say what holds the "
       "memory, cudaMallocAsync cannot",
       "The backend cudaMallocAsync keeps no history, and its snapshot calls do not work. Run again with the line "
       "below in "
       "the environment (ComfyUI: --disable-cuda-malloc): the message then tells the parts, and a snapshot can be "
       "recorded.",
       {"export PYTORCH_CUDA_ALLOC_CONF=backend:native"}},
      {"pt-", kTorchLevers, kRecordStep, RecordLines()},
      {"jax-xla",
       "have fewer or smaller arrays: a smaller batch, jax.checkpoint (remat), donated arguments, sharding over more "
       "devices",
       kStatisticsStep,
       {"jax.profiler.save_device_memory_profile(\"memory.prof\")"}},
      {"tf-bfc",
       "take a smaller batch, or raise the limit where the pool has one; set TF_GPU_ALLOCATOR=cuda_malloc_async where "
       "holes are in the way",
       kStatisticsStep,
       {"print(tf.config.experimental.get_memory_info(\"GPU:0\"))"}},
      {"tensorflow",
       "call tf.config.experimental.set_memory_growth, so that the pool leaves libraries room; take a smaller batch",
       kStatisticsStep,
       {"print(tf.config.experimental.get_memory_info(\"GPU:0\"))"}},
      {"cupy",
       "call pool.free_all_blocks() before the step, raise the limit where one is set, or take smaller arrays",
       kStatisticsStep,
       {"pool = cupy.get_default_memory_pool()", "print(pool.used_bytes(), pool.total_bytes())"}},
      {"cuda-library", kTorchLevers, kRecordStep, RecordLines()},
      {"cudnn", kTorchLevers, kRecordStep, RecordLines()},
      {"nccl",
       "leave NCCL room on the device: hold less before its first call (a smaller batch, torch.cuda.empty_cache()), or "
       "give it less (NCCL_BUFFSIZE, NCCL_MAX_NCHANNELS)",
       kRecordStep, RecordLines()},
      {"accelerate", "take a smaller model, or shard or offload it: no batch size fits", kRecordStep, RecordLines()},
      {"vllm",
       "lower max_model_len, max_num_seqs or the weights' precision, or raise tensor_parallel_size; "
       "gpu_memory_utilization: up where the device is not shared, down where something else holds a part of it",
       "vLLM logs what it measured before this line: the memory of the weights, the peak of the profiling run, and "
       "what it left for the KV cache. Give the log from its start; the line below makes it longer.",
       {"VLLM_LOGGING_LEVEL=DEBUG"}},
      {"sglang",
       "lower --max-running-requests or --context-length, quantize the weights, or raise --tp; --mem-fraction-static: "
       "up "
       "where the pool has too little, down where what is beside it has",
       "SGLang logs `avail mem` before and after the weights and the pool. Give the log from its start.",
       {}},
      {"tensorrt-llm",
       "lower kv_cache_free_gpu_mem_fraction, max_batch_size or max_num_tokens, or use tensor parallelism", kNativeStep,
       NativeLines()},
      {"tensorrt",
       "lower setMemoryPoolLimit(WORKSPACE) of the builder's config (--memPoolSize of trtexec), or take a smaller "
       "optimization profile: a tactic that does not fit is skipped, and the build goes on with another",
       kNativeStep, NativeLines()},
      {"onnxruntime",
       "set gpu_mem_limit and arena_extend_strategy (kSameAsRequested) of the CUDA provider, or take smaller inputs or "
       "batches",
       kNativeStep, NativeLines()},
      {"rmm",
       "raise maximum_pool_size, use a managed or an async resource, or hold less at once",
       "This message cannot tell which arrays hold the memory. Have every allocation logged: run the lines below at "
       "the start of the program, and read the log together with this message.",
       {"log = rmm.mr.LoggingResourceAdaptor(rmm.mr.get_current_device_resource(), log_file_name=\"rmm.csv\")",
        "rmm.mr.set_current_device_resource(log)"}},
      {"xgboost",
       "lower max_bin, max_depth or subsample, use QuantileDMatrix or external memory; end other processes on the "
       "device",
       kNativeStep, NativeLines()},
      {"faiss",
       "call setTempMemory(bytes) or noTempMemory() of StandardGpuResources, take smaller batches of queries, or "
       "float16",
       kNativeStep, NativeLines()},
      {"ggml",
       "put fewer layers on the device (-ngl), shorten the context (-c), lower the batch (-ub), quantize the cache "
       "(-ctk, "
       "-ctv); end other processes on the device",
       kNativeStep, NativeLines()},
      {"paddle",
       "raise FLAGS_fraction_of_gpu_memory_to_use, set FLAGS_allocator_strategy=auto_growth, or take a smaller batch",
       kStatisticsStep,
       {"print(paddle.device.cuda.memory_allocated(), paddle.device.cuda.memory_reserved())"}},
      {"mxnet", "raise MXNET_GPU_MEM_POOL_RESERVE, set MXNET_GPU_MEM_POOL_TYPE=Round, or take a smaller batch",
       kNativeStep, NativeLines()},
      {"dali", "lower prefetch_queue_depth, the batch, the threads, or device_memory_padding of the decoder",
       kNativeStep, NativeLines()},
      {"ctranslate2", "set compute_type to int8 or int8_float16, or take a smaller beam_size, batch or model",
       kNativeStep, NativeLines()},
      {"cuda-jl",
       "call GC.gc(true) and CUDA.reclaim() before the step, and CUDA.unsafe_free! on arrays that are done; set "
       "JULIA_CUDA_HARD_MEMORY_LIMIT where others share the device",
       "This message cannot tell which arrays hold the memory. Have CUDA.jl tell it: run the line below right before "
       "the "
       "step that fails.",
       {"CUDA.pool_status()"}},
      {"physx",
       "lower the sizes of the GPU buffers of the scene (gpu_found_lost_pairs_capacity, gpu_heap_capacity), or take "
       "fewer "
       "environments",
       kNativeStep, NativeLines()},
      {"hpu",
       "take a smaller batch or gradient checkpointing, or break lazy mode's graph (htcore.mark_step())",
       "This message cannot tell which tensors hold the memory. Run the line below right before the step that fails.",
       {"print(torch.hpu.memory_summary())"}},
      {"numba", "keep fewer arrays on the device; cuda.current_context().deallocations.clear() frees those that wait",
       kNativeStep, NativeLines()},
      {"shared-memory",
       "give it a larger /dev/shm (docker run --shm-size=8g), or take fewer workers of the DataLoader",
       kHostStep,
       {"df -h /dev/shm"}},
      {"commit-limit",
       "give Windows a larger paging file (System, Advanced, Performance, Virtual memory), or take fewer workers: "
       "each loads CUDA's libraries",
       "Windows promises memory against the paging file, whether it is used or not. The line below shows the limit.",
       {"systeminfo | findstr /C:\"Virtual Memory\""}},
      {"slurm",
       "ask for more: --mem or --mem-per-cpu of sbatch; or hold less of the host's memory",
       kHostStep,
       {"sacct -j JOB --format=JobID,ReqMem,MaxRSS,State"}},
      {"ashlar",
       "hold less at once, or free what is done before asking for more",
       "This message cannot tell which lines hold the memory. Run again with the line below: each failure writes what "
       "the allocator holds into a file for `ashlar explain`.",
       {"export ASHLAR_OOM_DUMP=/tmp"}},
      {"native-hip",
       "see who holds the device (rocm-smi --showpids); then hold less at once, or free what is done before asking for "
       "more",
       kNativeStep, NativeLines()},
      {"",
       "see who holds the device (nvidia-smi); then hold less at once, or free what is done before asking for more: "
       "`ashlar dry-run -- ./program` says without a GPU what the program needs",
       kNativeStep, NativeLines()}};
  return table;
}

}  // namespace

void WriteAdvice(const OomMessage& message, OomMessageVerdict& verdict) {
  const bool is_host = message.FindNote("host_memory") != nullptr;
  for (const MessageAdvice& advice : AdviceTable()) {
    if (!absl::StartsWith(message.family, advice.family)) continue;
    const bool is_last = advice.family.empty();
    verdict.levers = std::string(is_host && is_last ? kHostLevers : advice.levers);
    verdict.next_step = std::string(is_host && is_last ? kHostStep : advice.step);
    verdict.next_lines = is_host && is_last ? HostLines() : advice.lines;
    return;
  }
}

}  // namespace ashlar::analyses::oom
