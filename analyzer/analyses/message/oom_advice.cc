// Advice for who raised a message: what to try there, first and else, and how to learn more there.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
    "To see which lines hold the memory, begin with the first line: it writes down every call to the device, and "
    "explains them. The second serves the program's memory from Ashlar's allocator. ./program stands for your program "
    "with its arguments; nothing in it is to be changed.";
constexpr absl::string_view kHostStep =
    "To see which processes hold the host's memory, run the line below while the program grows.";
constexpr absl::string_view kTorchLevers =
    "what other settings would have done is not in this message: it needs a recorded snapshot";

constexpr char kHalveTraining[] = "halve the batch; in training, accumulate the gradients of 2 steps";
constexpr char kHoldLessOnHost[] =
    "hold less of the host's memory: fewer workers, less pinned memory, no data set or checkpoint read whole";

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

std::vector<std::string> HostLines() { return {"ps -eo pid,rss,args --sort=-rss | head"}; }

// Of a program that asks the device itself; `processes` lists who holds it.
std::vector<OomTry> NativeTries(const char* processes) {
  return {{"see who holds the device, and end what is not needed there", {processes}},
          {"have every call to the device written down and explained (./program stands for yours with its arguments)",
           {"ashlar record -- ./program"}},
          {"hold less at once: free what is no longer needed before more is asked for"}};
}

// Of a process that something ended, which nobody names.
std::vector<OomTry> EndedTries() {
  return {{"see whether Linux ended it, and what it held then", {"dmesg | grep -i -E 'killed process|out of memory'"}},
          {"give the job more memory of the host: --mem of Slurm, the container's limit"},
          {kHoldLessOnHost}};
}

struct MessageAdvice {
  absl::string_view family;  // of messages, by its beginning
  std::vector<OomTry> tries;
  absl::string_view step;
  std::vector<std::string> lines;
  const char* against_holes = "";  // one more try: the first where holes are in the way, else the last
};

// Frameworks of tensors. As the projects' own documentation names what helps.
std::vector<MessageAdvice> FrameworkAdvice() {
  return {
      {"pt-npu",
       {{kHalveTraining}, {"recompute activations (gradient checkpointing), then use bf16"}},
       kSnapshotStep,
       {"torch.npu.memory._record_memory_history(max_entries=100000)",
        "torch.npu.memory._dump_snapshot(\"snapshot.pickle\")"},
       "set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, where much is reserved and not allocated"},
      {"pt-cached", {}, kOldTorchStep, TorchLines()},
      {"pt-pre-1.0", {}, kOldTorchStep, TorchLines()},
      {"pt-xpu",
       {{kHalveTraining}, {"use gradient checkpointing, then bf16"}},
       kStatisticsStep,
       {"print(torch.xpu.memory_stats())"},
       "call torch.xpu.empty_cache() before the step that fails, where much is reserved and not allocated"},
      {"pt-mps",
       {{"halve the batch, or the largest arrays"},
        {"close what else uses this memory, which the device shares with the host"},
        {"set PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0, which lifts the limit: the system may then swap or fail"}},
       kStatisticsStep,
       {"print(torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory())"}},
      {"pt-async",
       {{"halve the batch or the image, or offload more of the models to the host"},
        {"let PyTorch's own allocator serve the program, which can say what holds the memory; cudaMallocAsync cannot",
         {"export PYTORCH_CUDA_ALLOC_CONF=backend:native"}}},
       "The backend cudaMallocAsync keeps no history, and its snapshot calls do not work. Run again with the line "
       "below in "
       "the environment (ComfyUI: --disable-cuda-malloc): the message then tells the parts, and a snapshot can be "
       "recorded.",
       {"export PYTORCH_CUDA_ALLOC_CONF=backend:native"}},
      {"pt-", {}, kRecordStep, RecordLines()},
      {"jax-xla",
       {{"halve the batch, or the largest arrays"},
        {"recompute (jax.checkpoint), and donate arguments (donate_argnums)"},
        {"shard the arrays over more devices"}},
       kStatisticsStep,
       {"jax.profiler.save_device_memory_profile(\"memory.prof\")"}},
      {"tf-bfc",
       {{"halve the batch"}, {"raise the limit of the pool, where the program sets one"}},
       kStatisticsStep,
       {"print(tf.config.experimental.get_memory_info(\"GPU:0\"))"},
       "set TF_GPU_ALLOCATOR=cuda_malloc_async, which has no such holes"},
      {"tensorflow",
       {{"call tf.config.experimental.set_memory_growth(gpu, True) for each GPU at the start: the pool then leaves "
         "libraries room"},
        {"halve the batch"}},
       kStatisticsStep,
       {"print(tf.config.experimental.get_memory_info(\"GPU:0\"))"}},
      {"cupy",
       {{"give the cache back before the step that fails", {"cupy.get_default_memory_pool().free_all_blocks()"}},
        {"take smaller arrays, or fewer at once"}},
       kStatisticsStep,
       {"pool = cupy.get_default_memory_pool()", "print(pool.used_bytes(), pool.total_bytes())"}},
      {"paddle",
       {{"halve the batch"},
        {"set FLAGS_allocator_strategy=auto_growth"},
        {"raise FLAGS_fraction_of_gpu_memory_to_use, where the device has more free than the pool takes"}},
       kStatisticsStep,
       {"print(paddle.device.cuda.memory_allocated(), paddle.device.cuda.memory_reserved())"}},
      {"mxnet",
       {{"halve the batch"},
        {"set MXNET_GPU_MEM_POOL_TYPE=Round"},
        {"raise MXNET_GPU_MEM_POOL_RESERVE, which leaves libraries room"}},
       kNativeStep,
       NativeLines()},
      {"cuda-jl",
       {{"hand the cache back before the step that fails", {"GC.gc(true); CUDA.reclaim()"}},
        {"call CUDA.unsafe_free! on arrays that are no longer needed"},
        {"set JULIA_CUDA_HARD_MEMORY_LIMIT, where others share the device"}},
       "This message cannot tell which arrays hold the memory. Have CUDA.jl tell it: run the line below right before "
       "the "
       "step that fails.",
       {"CUDA.pool_status()"}},
      {"hpu",
       {{"halve the batch, or use gradient checkpointing"}, {"break lazy mode's graph: htcore.mark_step()"}},
       "This message cannot tell which tensors hold the memory. Run the line below right before the step that fails.",
       {"print(torch.hpu.memory_summary())"}},
      {"mlx",
       {{"halve the batch, or split the largest array"},
        {"close what else uses this memory, which the device shares with the host"}},
       kStatisticsStep,
       {"print(mx.get_active_memory(), mx.get_peak_memory())"}},
      {"accelerate",
       {{"take a smaller model, or offload a part of it (device_map=\"auto\"): no batch size fits"},
        {"shard it over more devices"}},
       kRecordStep,
       RecordLines()},
  };
}

// What serves models. Where an engine's own check has figures, oom_engines.cc goes before.
std::vector<MessageAdvice> ServingAdvice() {
  return {
      {"vllm",
       {{"halve max_model_len"},
        {"halve max_num_seqs"},
        {"load the weights quantized, or raise tensor_parallel_size"},
        {"lower gpu_memory_utilization, where something else holds a part of the device"}},
       "vLLM logs what it measured before this line: the memory of the weights, the peak of the profiling run, and "
       "what it left for the KV cache. Give the log from its start; the line below makes it longer.",
       {"VLLM_LOGGING_LEVEL=DEBUG"}},
      {"sglang",
       {{"halve --max-running-requests"},
        {"shorten --context-length"},
        {"load the weights quantized, or raise --tp"},
        {"lower --mem-fraction-static, where what is beside the pool has too little"}},
       "SGLang logs `avail mem` before and after the weights and the pool. Give the log from its start.",
       {}},
      {"tgi",
       {{"lower --max-batch-prefill-tokens"}, {"load the weights quantized (--quantize), or raise --num-shard"}},
       kRecordStep,
       RecordLines()},
      {"torch-memory-saver",
       {{"free what took the memory while this slept, before it wakes: the trainer's tensors, and its cache",
         {"torch.cuda.empty_cache()"}}},
       kRecordStep,
       RecordLines()},
      {"tensorrt-llm",
       {{"lower kv_cache_free_gpu_mem_fraction"},
        {"halve max_batch_size, then max_num_tokens"},
        {"use tensor parallelism"}},
       kNativeStep,
       NativeLines()},
      {"tensorrt",
       {{"lower setMemoryPoolLimit(WORKSPACE) of the builder's config (--memPoolSize of trtexec): a tactic that does "
         "not fit is skipped, and the build goes on with another"},
        {"take a smaller optimization profile"}},
       kNativeStep,
       NativeLines()},
      {"onnxruntime",
       {{"set arena_extend_strategy to kSameAsRequested, and gpu_mem_limit, in the CUDA provider's options"},
        {"halve the batch or the inputs"}},
       kNativeStep,
       NativeLines()},
      {"ggml",
       {{"lower -ngl: fewer layers on the device (Ollama: num_gpu)"},
        {"shorten the context (-c), then the batch (-ub)"},
        {"quantize the cache (-ctk q8_0 -ctv q8_0)"},
        {"end other processes on the device"}},
       kNativeStep,
       NativeLines()},
      {"ctranslate2",
       {{"set compute_type=\"int8_float16\", or \"int8\""},
        {"lower beam_size, then the batch"},
        {"take a smaller model"}},
       kNativeStep,
       NativeLines()},
      {"ollama",
       {{"take a smaller model or a stronger quantization, or lower num_ctx"},
        {"end what else holds the host's memory"}},
       kHostStep,
       HostLines()},
  };
}

// Libraries that ask the device themselves.
std::vector<MessageAdvice> LibraryAdvice() {
  return {
      {"cuda-library", {}, kRecordStep, RecordLines()},
      {"cudnn", {}, kRecordStep, RecordLines()},
      {"nccl",
       {{"leave NCCL room on the device: halve the batch, or give PyTorch's cache back before NCCL's first call",
         {"torch.cuda.empty_cache()"}},
        {"give NCCL less: lower NCCL_BUFFSIZE, then NCCL_MAX_NCHANNELS"}},
       kRecordStep,
       RecordLines()},
      {"rmm",
       {{"raise the pool's maximum_pool_size"}, {"use a managed or an async resource"}, {"hold less at once"}},
       "This message cannot tell which arrays hold the memory. Have every allocation logged: run the lines below at "
       "the start of the program, and read the log together with this message.",
       {"log = rmm.mr.LoggingResourceAdaptor(rmm.mr.get_current_device_resource(), log_file_name=\"rmm.csv\")",
        "rmm.mr.set_current_device_resource(log)"}},
      {"xgboost",
       {{"use QuantileDMatrix, or external memory"},
        {"lower max_bin, then max_depth or subsample"},
        {"end other processes on the device"}},
       kNativeStep,
       NativeLines()},
      {"faiss",
       {{"call noTempMemory() of StandardGpuResources, or setTempMemory(bytes) with fewer"},
        {"search smaller batches of queries"},
        {"store float16 (useFloat16)"}},
       kNativeStep,
       NativeLines()},
      {"dali",
       {{"lower prefetch_queue_depth"},
        {"halve the batch, then the threads"},
        {"lower device_memory_padding of the decoder"}},
       kNativeStep,
       NativeLines()},
      {"physx",
       {{"take fewer environments"},
        {"lower the sizes of the GPU buffers of the scene: gpu_found_lost_pairs_capacity, gpu_heap_capacity"}},
       kNativeStep,
       NativeLines()},
      {"numba",
       {{"keep fewer arrays on the device, and free those that wait", {"cuda.current_context().deallocations.clear()"}},
        {"see who else holds the device", {"nvidia-smi"}}},
       kNativeStep,
       NativeLines()},
      {"ashlar",
       {{"hold less at once: free what is no longer needed before more is asked for"}},
       "This message cannot tell which lines hold the memory. Run again with the line below: each failure writes what "
       "the allocator holds into a file for `ashlar explain`.",
       {"export ASHLAR_OOM_DUMP=/tmp"}},
      {"native-hip", NativeTries("rocm-smi --showpids"), kNativeStep, NativeLines()},
      {"", NativeTries("nvidia-smi"), kNativeStep, NativeLines()},
  };
}

// The memory of the host: a command that shows the limit, and what to do with it.
std::vector<MessageAdvice> HostAdvice() {
  const OomTry less = {kHoldLessOnHost};
  return {
      {"shared-memory",
       {{"give the container a larger /dev/shm than this line shows (docker run --shm-size=8g, for example)",
         {"df -h /dev/shm"}},
        {"take fewer workers of the DataLoader (num_workers)"}},
       kHostStep,
       HostLines()},
      {"commit-limit",
       {{"give Windows a larger paging file (System, Advanced, Performance, Virtual memory) than this line shows",
         {"systeminfo | findstr /C:\"Virtual Memory\""}},
        {"take fewer workers: each loads CUDA's libraries"}},
       "Windows promises memory against the paging file, whether it is used or not. The line below shows the limit.",
       {"systeminfo | findstr /C:\"Virtual Memory\""}},
      {"slurm",
       {{"ask for more than the job may have, which this line shows as ReqMem: --mem or --mem-per-cpu of sbatch (JOB "
         "is "
         "the job's number)",
         {"sacct -j JOB --format=JobID,ReqMem,MaxRSS,State"}},
        less},
       kHostStep,
       HostLines()},
      {"kernel-cgroup",
       {{"raise the memory limit of the container or job, which this line shows inside it",
         {"cat /sys/fs/cgroup/memory.max"}},
        less},
       kHostStep,
       HostLines()},
      {"kernel",
       {{"end what else holds the host's memory, or run on a host with more", {"free -m"}}, less},
       kHostStep,
       HostLines()},
      {"cgroup",
       {{"raise the container's memory limit (resources.limits.memory; docker run --memory)"}, less},
       kHostStep,
       HostLines()},
      {"ray",
       {{"let Ray start fewer tasks at once: give each more of num_cpus, or say what it takes (memory=)"}, less},
       kHostStep,
       HostLines()},
      {"elastic", EndedTries(), kHostStep, HostLines()},
      {"dataloader", EndedTries(), kHostStep, HostLines()},
      {"",
       {{"see how much memory the host has free, and what a process may have; then give this program more",
         {"free -m", "ulimit -v"}},
        less},
       kHostStep,
       HostLines()},
  };
}

// The first that fits counts.
const MessageAdvice& AdviceOf(const OomMessage& message) {
  static const auto& of_device = *new std::vector<MessageAdvice>([] {
    std::vector<MessageAdvice> out = FrameworkAdvice();
    for (const auto& part : {ServingAdvice(), LibraryAdvice()}) out.insert(out.end(), part.begin(), part.end());
    return out;
  }());
  static const auto& of_host = *new std::vector<MessageAdvice>(HostAdvice());
  const bool is_host = message.FindNote("host_memory") != nullptr && message.family != "ollama";
  for (const MessageAdvice& advice : is_host ? of_host : of_device) {
    if (absl::StartsWith(message.family, advice.family)) return advice;
  }
  return of_device.back();
}

std::vector<OomTry> TriesOf(const OomMessage& message, const MessageAdvice& advice, OomVerdict kind) {
  if (std::vector<OomTry> of_engine = EngineTries(message); !of_engine.empty()) return of_engine;
  std::vector<OomTry> out = advice.tries;
  if (const std::optional<OomTry> first = FirstTryOf(message)) {
    if (out.empty() || IsOfNativeProgram(message)) out.emplace(out.begin());
    out.front() = *first;
  }
  if (*advice.against_holes == '\0') return out;
  out.insert(kind == OomVerdict::kFragmentation ? out.begin() : out.end(), {advice.against_holes});
  return out;
}

}  // namespace

void WriteAdvice(const OomMessage& message, OomMessageVerdict& verdict) {
  const MessageAdvice& advice = AdviceOf(message);
  verdict.tries = TriesOf(message, advice, verdict.kind);
  verdict.levers = verdict.tries.empty()
                       ? std::string(kTorchLevers)
                       : absl::StrJoin(verdict.tries, "; else ",
                                       [](std::string* out, const OomTry& one) { absl::StrAppend(out, one.what); });
  verdict.next_step = std::string(advice.step);
  verdict.next_lines = advice.lines;
}

}  // namespace ashlar::analyses::oom
