// Messages of the table of rows, of figures beside a message, and of one failure told several times. Names and figures
// are made up; the words are those of the programs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyzer/formats/oom/oom_message.h"

namespace ashlar::formats {
namespace {

struct Line {
  const char* text;
  const char* family;
  std::uint64_t tried;  // 0: not told
  int device;           // -1: not told
  const char* note;     // "": none of those that the analysis goes by
};

constexpr Line kLines[] = {
    {"Allocation on device 2 would exceed allowed memory. (out of memory)\nCurrently allocated     : 6.50 "
     "GiB\nRequested        "
     "       : 128.00 MiB\nDevice limit            : 7.00 GiB\nFree (according to CUDA): 0 bytes\nPyTorch limit (set "
     "by "
     "user-supplied memory fraction)\n                        : 17179869184.00 GiB\n",
     "pt-async", 134217728, 2, "no_limit"},
    {"Exception Message: Allocation on device 0 \nThis error means you ran out of memory on your GPU.\n", "pt-async", 0,
     -1, ""},
    {"RuntimeError: NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at \"a.cpp\":9\n",
     "pt-nvml", 0, -1, "hidden_failure"},
    {"RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasLtCreate(h)`\n", "cuda-library", 0,
     -1, "hidden_failure"},
    {"RuntimeError: No executable batch size found, reached zero.\n", "accelerate", 0, -1, "hidden_failure"},
    {"RuntimeError: CUDA out of memory occurred when warming up sampler with 96 dummy requests. Lower it.\n", "vllm", 0,
     -1, "own_check"},
    {"Error in memory profiling. Initial free memory 9.50 GiB, current free memory 11.25 GiB. This\n", "vllm", 0, -1,
     "not_out_of_memory"},
    {"RuntimeError: CUDA Error: out of memory at /w/csrc/cumem_allocator.cpp:88\n", "vllm", 0, -1, "sleep_mode"},
    {"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n", "sglang", 0, -1, "own_check"},
    {"bfc_arena.cc:9 Failed to allocate memory for requested buffer of size 77070336\n", "onnxruntime", 77070336, -1,
     ""},
    {"[W] Requested amount of GPU memory (5368709120 bytes) could not be allocated. There\n", "tensorrt", 5368709120,
     -1, ""},
    {"alloc fail type IVFLists dev 3 space Device stream 0x11 size 402653184 (cudaMalloc error out of memory [2])\n",
     "faiss", 402653184, 3, ""},
    {"error: (-217:Gpu API call) out of memory in function 'upload'\n", "opencv", 0, -1, ""},
    {"  what():  std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n", "thrust", 0, -1, ""},
    {"x.cuh:9: Memory allocation error on worker 3: std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n- Free "
     "memory: "
     "1048576\n- Requested memory: 4194304\n",
     "xgboost", 4194304, -1, ""},
    {"Kokkos failed to allocate memory for label \"cell list\".  Allocation using MemorySpace named \"Cuda\" failed "
     "with the "
     "following error:  Allocation of size 12.5 G failed, likely due to insufficient memory.\n",
     "kokkos", 13421772800, -1, "label"},
    {"Out of gpu memory. Free: 2048 Asked: 65536 !!!\n", "amrex", 65536, -1, ""},
    {"RuntimeError: Failed to allocate 805306368 bytes on device 'cuda:1'\n", "warp", 805306368, 1, ""},
    {"Out of memory allocating 2147483648 bytes of device memory\ntotal/free CUDA memory: 8589934592/1073741824\n",
     "nvhpc", 2147483648, -1, ""},
    {"ROCm error: out of memory\n  current device: 1, in function alloc at a.cu:9\n", "ggml", 0, 1, ""},
    {"cudaMalloc failed: out of memory\nalloc_tensor: failed to allocate CUDA1 buffer of size 536870912\n", "ggml",
     536870912, 1, ""},
    {"can't allocate 3221225472 Bytes of memory on device\n", "ggml", 3221225472, -1, ""},
    {"Ran out of memory in memory space hbm. Used 20.50G of 15.75G hbm. Exceeded hbm capacity by 4.75G.\n", "jax-xla",
     0, -1, "at_compile_time"},
    {"RuntimeError: Invalid buffer size: 30.25 GiB\n", "pt-mps", 32480690176, -1, "buffer_limit"},
    {"MODULE:PT_DEVMEM Allocation failed for size::8388608 (8)MB\n", "hpu", 8388608, -1, ""},
    {"DefaultCPUAllocator: can't allocate memory: you tried to allocate 6291456 bytes. Error code 12\n",
     "cpu-allocator", 6291456, -1, "host_memory"},
    {"Out of memory: Killed process 77 (trainer) total-vm:900kB, anon-rss:600kB, file-rss:0kB\n", "kernel", 0, -1,
     "host_memory"},
    {"slurmstepd: error: Detected 3 oom_kill events in StepId=9.0. Some of the\n", "slurm", 0, -1, "host_memory"},
    {"OSError: [WinError 1455] The paging file is too small for this operation to complete. Error\n", "commit-limit", 0,
     -1, "host_memory"},
    {"CUDA error at a.cu:9 code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&p, n)\"\n", "native-cuda", 0, -1,
     "library_call"},
};

OomMessage OnlyOf(const std::string& text) {
  const std::vector<OomMessage> found = FindOomMessages(text);
  EXPECT_EQ(found.size(), 1u) << text;
  return found.empty() ? OomMessage{} : found.front();
}

TEST(OomMessageTableTest, EachLineIsReadWithItsFigures) {
  for (const Line& line : kLines) {
    SCOPED_TRACE(line.text);
    const OomMessage message = OnlyOf(line.text);
    EXPECT_EQ(message.family, line.family);
    EXPECT_EQ(message.tried.has_value(), line.tried != 0);
    if (message.tried) {
      EXPECT_NEAR(static_cast<double>(message.tried->MiddleBytes()), static_cast<double>(line.tried), 1.0);
    }
    EXPECT_EQ(message.device.value_or(-1), line.device);
    if (*line.note != '\0') {
      EXPECT_NE(message.FindNote(line.note), nullptr);
    }
  }
}

// Each line on its own in one log, far apart: none is lost, none is taken for its neighbour.
TEST(OomMessageTableTest, AllInOneLog) {
  std::string log;
  for (const Line& line : kLines) log += std::string(line.text) + std::string(5000, '-') + "\n";
  const std::vector<OomMessage> found = FindOomMessages(log);
  ASSERT_EQ(found.size(), std::size(kLines));
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].family, kLines[i].family);
}

TEST(OomMessageTableTest, CodeAndProseAreNoFailures) {
  for (const char* text :
       {"if err == `cudaErrorMemoryAllocation`:",
        "raise RuntimeError(\"No executable batch size found, reached zero.\")", "alert: reason=\"OOMKilled\" for 5m",
        "Model loading took 12.50 GiB", "Available KV cache memory: 3.00 GiB",
        "Load weight end. type=A, avail mem=8.00 GB, mem usage=1.00 GB.",
        "| PyTorch CUDA memory summary, device ID 0 |\n| CUDA OOMs: 0 | cudaMalloc retries: 0 |"}) {
    EXPECT_TRUE(FindOomMessages(text).empty()) << text;
  }
}

TEST(OomMessageTableTest, WhatNothingHoldsIsNotStored) {
  const OomMessage message = OnlyOf(
      "Out of memory error on GPU 1. Cannot allocate 3.000000MB memory on GPU 1, 120.500000TB memory has been "
      "allocated and "
      "available memory is only 1.000000MB.");
  EXPECT_NE(message.FindNote("impossible_figure"), nullptr);
  EXPECT_FALSE(message.total.has_value());
  EXPECT_TRUE(message.free.has_value());
  // A program may ask for as much: that is no figure of what is held.
  EXPECT_TRUE(
      OnlyOf(
          "CUDA out of memory. Tried to allocate 200.00 TiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB "
          "is free.")
          .tried.has_value());
}

TEST(OomMessageTableTest, AnEnginesSumBeforeItsFailureBelongsToIt) {
  const OomMessage message = OnlyOf(
      "the current vLLM instance can use total_gpu_memory (15.75GiB) x gpu_memory_utilization (0.80) = 12.60GiB\n"
      "model weights take 11.25GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 1.75GiB; the "
      "rest of "
      "the memory reserved for KV Cache is -0.50GiB.\n"
      "ValueError: No available memory for the cache blocks. Try\nValueError: No available memory for the cache "
      "blocks. Try\n");
  EXPECT_EQ(message.total->printed, "15.75GiB");
  EXPECT_EQ(message.told, 2u);
  const std::pair<const char*, const char*> figures[] = {{"share", "12.60GiB"},
                                                         {"weights", "11.25GiB"},
                                                         {"non_torch", "0.10GiB"},
                                                         {"activations", "1.75GiB"},
                                                         {"kv_cache_missing", "0.50GiB"}};
  for (const auto& [name, printed] : figures) {
    ASSERT_NE(message.Detail(name), nullptr) << name;
    EXPECT_EQ(message.Detail(name)->printed, printed);
  }
}

TEST(OomMessageTableTest, ThePoolAndTheOperationAreOneFailure) {
  const OomMessage message = OnlyOf(
      "Allocator (GPU_1_bfc) ran out of memory trying to allocate 256.00MiB (rounded to 268435456)requested by op "
      "Conv2D\n"
      "OP_REQUIRES failed at conv.cc:9 : OOM when allocating tensor with shape[64,1024,1024] and type float on "
      "/job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc\n");
  EXPECT_EQ(message.device, 1);
  EXPECT_NE(message.Detail("tensor"), nullptr);
}

TEST(OomMessageTableTest, XlaTellsTheBytesOfEveryPoolThatRefused) {
  const std::vector<OomMessage> found = FindOomMessages(
      "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB (rounded to 1073742080)requested by op \n"
      "Allocator (GPU_3_bfc) ran out of memory trying to allocate 1.00GiB (rounded to 1073742080)requested by op \n"
      "Execution of replica 0 failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741900 bytes.\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].device, 0);
  EXPECT_EQ(found[1].device, 3);
  for (const OomMessage& message : found) {
    EXPECT_EQ(message.family, "jax-xla");
    EXPECT_EQ(message.tried->low_bytes, 1073741900u);
  }
}

TEST(OomMessageTableTest, RefusalsThatNothingFollowsAreOne) {
  std::string log;
  for (const int size : {512, 256, 128, 128}) {
    log += "[W] memory allocation failed with OOM on device 1 while trying to allocate " + std::to_string(size << 20) +
           " bytes (free: 1048576, total: 8589934592).\n";
  }
  const OomMessage message = OnlyOf(log);
  EXPECT_EQ(message.told, 4u);
  EXPECT_EQ(message.Detail("largest_tried")->low_bytes, 512u << 20);
  EXPECT_EQ(message.Detail("smallest_tried")->low_bytes, 128u << 20);
  EXPECT_EQ(message.FindNote("halved_requests")->count, 2u);
}

TEST(OomMessageTableTest, TheDevicesTableStandsForWhatTheMessageLeavesOut) {
  const OomMessage message = OnlyOf(
      "| NVIDIA-SMI 535.1   Driver Version: 535.1   CUDA Version: 12.2 |\n"
      "|   0  Tesla T4     Off  | 00000000:00:04.0 Off |    0 |\n"
      "| N/A   61C    P0    30W /  70W |  15000MiB / 15360MiB |  9%      Default |\n"
      "| Processes:  |\n|  GPU   GI   CI    PID   Type   Process name    GPU Memory |\n|   Usage |\n"
      "|    0   N/A  N/A     4321      C   python3          14990MiB |\n"
      "RuntimeError: CUDA error: out of memory\n");
  EXPECT_EQ(message.total->printed, "15360MiB");
  ASSERT_NE(message.Detail("device_used"), nullptr);
  ASSERT_EQ(message.processes.size(), 1u);
  EXPECT_EQ(message.processes[0].pid, 4321);
  EXPECT_EQ(message.processes[0].used->printed, "14990MiB");
}

TEST(OomMessageTableTest, OfSeveralDevicesTheOnlyFullOneCounts) {
  const std::string head = "| NVIDIA-SMI 535.1   Driver Version: 535.1   CUDA Version: 12.2 |\n";
  const auto row = [](const char* used) {
    return std::string("| N/A   41C    P0    30W /  70W |  ") + used + "MiB /  20000MiB |  9%      Default |\n";
  };
  const std::string failure = "RuntimeError: CUDA error: out of memory\n";
  EXPECT_EQ(OnlyOf(head + row("10") + row("19900") + failure).Detail("device_used")->printed, "19900MiB");
  EXPECT_EQ(OnlyOf(head + row("19800") + row("19900") + failure).Detail("device_used"), nullptr);
}

constexpr char kShort[] = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";

std::vector<std::string> PathOf(const std::string& log, std::size_t message = 0) {
  std::vector<std::string> out;
  const std::vector<OomMessage> found = FindOomMessages(log);
  EXPECT_GT(found.size(), message) << log;
  if (found.size() <= message) return out;
  for (const TracebackLine& line : found[message].traceback) {
    out.push_back(line.frame.file + ":" + std::to_string(line.frame.line) + " " + line.code);
  }
  return out;
}

using Path = std::vector<std::string>;

TEST(OomTracebackTest, EachSpeakerHasItsOwnLines) {
  for (const auto& [first, second] :
       {std::pair("4: ", "11: "), std::pair("node-a: ", "node-b: "), std::pair("[default0]:", "[default1]:"),
        std::pair("w-0  | ", "w-1  | "), std::pair("Mar 02 01:02:03 h run[7]: ", "Mar 02 01:02:03 h run[8]: ")}) {
    SCOPED_TRACE(first);
    const auto line = [](const char* who, const char* text) { return std::string(who) + text + "\n"; };
    const std::string log = line(first, "Traceback (most recent call last):") +
                            line(second, "Traceback (most recent call last):") +
                            line(first, "  File \"fit.py\", line 9, in <module>") +
                            line(second, "  File \"fit.py\", line 31, in <module>") + line(first, "    go(a)") +
                            line(second, "    stay(b)") + first + kShort + second +
                            "torch.OutOfMemoryError: CUDA out of memory. Tried " + "to allocate 3.00 GiB.\n";
    EXPECT_EQ(PathOf(log, 0), Path{"fit.py:9 go(a)"});
    EXPECT_EQ(PathOf(log, 1), Path{"fit.py:31 stay(b)"});
  }
}

TEST(OomTracebackTest, TwoThatNothingTellsApartAreNotTold) {
  const std::vector<OomMessage> found = FindOomMessages(
      std::string("Traceback (most recent call last):\n  File \"fit.py\", line 9, in <module>\n    go(a)\n  File "
                  "\"fit.py\", line 31, in <module>\n    stay(b)\n") +
      kShort);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].traceback.empty());
  EXPECT_NE(found[0].FindNote("mixed_traceback"), nullptr);
}

TEST(OomTracebackTest, NotebooksAndBoxes) {
  EXPECT_EQ(
      PathOf(std::string(
                 "OutOfMemoryError      Traceback (most recent call last)\n<ipython-input-7-0a1b2c> in <module>()\n   "
                 "   1 a = 1\n----> 2 b = net(a)\n      3 c = 3\n") +
             kShort),
      Path{"cell 7:2 b = net(a)"});
  EXPECT_EQ(
      PathOf(
          std::string(
              "OutOfMemoryError      Traceback (most recent call last)\nCell In[4], line 6\n      5 a = 1\n----> 6 b "
              "= net(a)\n\nFile ~/lib/net.py:88, in Net.forward(self, x)\n     87 y = x\n---> 88 return y @ y\n\n") +
          kShort),
      (Path{"cell 4:6 b = net(a)", "~/lib/net.py:88 return y @ y"}));
  EXPECT_EQ(
      PathOf(
          std::string(
              "╭──── Traceback (most recent call last) ────╮\n│ /w/go.py:15 in main                       │\n│ "
              "                                          │\n│    14 │   a = 1                           │\n│ ❱  15 │   "
              "│   b = net(a)                  │\n╰───────────────────────────────────────────╯\n") +
          kShort),
      Path{"/w/go.py:15 b = net(a)"});
}

TEST(OomTracebackTest, InsideJson) {
  EXPECT_EQ(
      PathOf(
          "{\"message\": \"failed\\nTraceback (most recent call last):\\n  File \\\"/s/m.py\\\", line 5, in go\\n    "
          "run(x)\\nOutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\"}\n"),
      Path{"/s/m.py:5 run(x)"});
}

}  // namespace
}  // namespace ashlar::formats
