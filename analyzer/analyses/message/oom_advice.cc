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
       "a smaller batch with gradient accumulation, recomputation, bf16; PYTORCH_NPU_ALLOC_CONF=expandable_segments:"
       "True where much is reserved and not allocated",
       kSnapshotStep,
       {"torch.npu.memory._record_memory_history(max_entries=100000)",
        "torch.npu.memory._dump_snapshot(\"snapshot.pickle\")"}},
      {"pt-cached", kTorchLevers, kOldTorchStep, TorchLines()},
      {"pt-pre-1.0", kTorchLevers, kOldTorchStep, TorchLines()},
      {"pt-xpu",
       "a smaller batch with gradient accumulation, gradient checkpointing, bf16; torch.xpu.empty_cache() where much "
       "is "
       "reserved and not allocated",
       kStatisticsStep,
       {"print(torch.xpu.memory_stats())"}},
      {"pt-mps",
       "a smaller batch or smaller arrays; close what else uses this memory, which the device shares with the host; "
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
       "fewer or smaller arrays: a smaller batch, jax.checkpoint (remat), donated arguments, sharding over more "
       "devices",
       kStatisticsStep,
       {"jax.profiler.save_device_memory_profile(\"memory.prof\")"}},
      {"tf-bfc",
       "a smaller batch, or a larger limit where the pool has one; TF_GPU_ALLOCATOR=cuda_malloc_async where holes are "
       "in the way",
       kStatisticsStep,
       {"print(tf.config.experimental.get_memory_info(\"GPU:0\"))"}},
      {"tensorflow",
       "tf.config.experimental.set_memory_growth, so that the pool leaves libraries room; a smaller batch",
       kStatisticsStep,
       {"print(tf.config.experimental.get_memory_info(\"GPU:0\"))"}},
      {"cupy",
       "pool.free_all_blocks() before the step, a larger limit where one is set, or smaller arrays",
       kStatisticsStep,
       {"pool = cupy.get_default_memory_pool()", "print(pool.used_bytes(), pool.total_bytes())"}},
      {"cuda-library", kTorchLevers, kRecordStep, RecordLines()},
      {"cudnn", kTorchLevers, kRecordStep, RecordLines()},
      {"nccl", kTorchLevers, kRecordStep, RecordLines()},
      {"accelerate", "a smaller model, or one that is sharded or offloaded: no batch size fits", kRecordStep,
       RecordLines()},
      {"vllm",
       "max_num_seqs, max_model_len, the weights' precision, tensor_parallel_size; gpu_memory_utilization, up where "
       "the "
       "device is not shared, down where something else holds a part of it",
       "vLLM logs what it measured before this line: the memory of the weights, the peak of the profiling run, and "
       "what it left for the KV cache. Give the log from its start; the line below makes it longer.",
       {"VLLM_LOGGING_LEVEL=DEBUG"}},
      {"sglang",
       "--mem-fraction-static, --max-running-requests, --context-length, --tp, quantized weights",
       "SGLang logs `avail mem` before and after the weights and the pool. Give the log from its start.",
       {}},
      {"tensorrt-llm", "kv_cache_free_gpu_mem_fraction, max_batch_size, max_num_tokens, tensor parallelism",
       kNativeStep, NativeLines()},
      {"tensorrt",
       "setMemoryPoolLimit(WORKSPACE) of the builder's config, --memPoolSize of trtexec, a smaller optimization "
       "profile: "
       "a tactic that does not fit is skipped, and the build goes on with another",
       kNativeStep, NativeLines()},
      {"onnxruntime",
       "gpu_mem_limit and arena_extend_strategy (kSameAsRequested) of the CUDA provider, smaller inputs or batches",
       kNativeStep, NativeLines()},
      {"rmm",
       "a larger maximum_pool_size, a managed or an async resource, or less held at once",
       "This message cannot tell which arrays hold the memory. Have every allocation logged: run the lines below at "
       "the start of the program, and read the log together with this message.",
       {"log = rmm.mr.LoggingResourceAdaptor(rmm.mr.get_current_device_resource(), log_file_name=\"rmm.csv\")",
        "rmm.mr.set_current_device_resource(log)"}},
      {"xgboost", "max_bin, QuantileDMatrix or external memory, subsample, max_depth; other processes on the device",
       kNativeStep, NativeLines()},
      {"faiss", "setTempMemory(bytes) or noTempMemory() of StandardGpuResources, smaller batches of queries, float16",
       kNativeStep, NativeLines()},
      {"ggml",
       "fewer layers on the device (-ngl), a shorter context (-c), a smaller batch (-ub), a quantized cache (-ctk, "
       "-ctv); other processes on the device",
       kNativeStep, NativeLines()},
      {"paddle",
       "FLAGS_fraction_of_gpu_memory_to_use, FLAGS_allocator_strategy=auto_growth, a smaller batch",
       kStatisticsStep,
       {"print(paddle.device.cuda.memory_allocated(), paddle.device.cuda.memory_reserved())"}},
      {"mxnet", "MXNET_GPU_MEM_POOL_RESERVE, MXNET_GPU_MEM_POOL_TYPE=Round, a smaller batch", kNativeStep,
       NativeLines()},
      {"dali", "prefetch_queue_depth, a smaller batch, device_memory_padding of the decoder, fewer threads",
       kNativeStep, NativeLines()},
      {"ctranslate2", "compute_type int8 or int8_float16, a smaller beam_size, batch or model", kNativeStep,
       NativeLines()},
      {"cuda-jl",
       "GC.gc(true) and CUDA.reclaim() before the step, CUDA.unsafe_free! on arrays that are done, "
       "JULIA_CUDA_HARD_MEMORY_LIMIT where others share the device",
       "This message cannot tell which arrays hold the memory. Have CUDA.jl tell it: run the line below right before "
       "the "
       "step that fails.",
       {"CUDA.pool_status()"}},
      {"physx",
       "the sizes of the GPU buffers of the scene (gpu_found_lost_pairs_capacity, gpu_heap_capacity), fewer "
       "environments",
       kNativeStep, NativeLines()},
      {"hpu",
       "a smaller batch, gradient checkpointing, lazy mode's graph breaks (htcore.mark_step())",
       "This message cannot tell which tensors hold the memory. Run the line below right before the step that fails.",
       {"print(torch.hpu.memory_summary())"}},
      {"numba", "fewer arrays kept on the device; cuda.current_context().deallocations.clear() frees those that wait",
       kNativeStep, NativeLines()},
      {"shared-memory",
       "a larger /dev/shm (docker run --shm-size=8g), or fewer workers of the DataLoader",
       kHostStep,
       {"df -h /dev/shm"}},
      {"commit-limit",
       "a larger paging file (Windows: System, Advanced, Performance, Virtual memory), or fewer workers: "
       "each loads CUDA's libraries",
       "Windows promises memory against the paging file, whether it is used or not. The line below shows the limit.",
       {"systeminfo | findstr /C:\"Virtual Memory\""}},
      {"slurm",
       "ask for more: --mem or --mem-per-cpu of sbatch; or hold less of the host's memory",
       kHostStep,
       {"sacct -j JOB --format=JobID,ReqMem,MaxRSS,State"}},
      {"ashlar",
       kTorchLevers,
       "This message cannot tell which lines hold the memory. Run again with the line below: each failure writes what "
       "the allocator holds into a file for `ashlar explain`.",
       {"export ASHLAR_OOM_DUMP=/tmp"}},
      {"", "which settings help depends on the program: hold less at once, or free what is done before asking for more",
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
