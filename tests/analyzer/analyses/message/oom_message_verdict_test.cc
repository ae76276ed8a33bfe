#include "analyzer/analyses/message/oom_message_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/analyzer/formats/oom/messages.h"

namespace ashlar::analyses {
namespace {

using namespace oom_messages;
using testing::HasSubstr;

constexpr double kMebi = 1048576.0;
constexpr double kGibi = 1073741824.0;

OomMessageVerdict Judge(const std::string& text, OomJudgeOptions options = {}) {
  const std::vector<formats::OomMessage> found = formats::FindOomMessages(text);
  EXPECT_EQ(found.size(), 1u) << text;
  return found.empty() ? OomMessageVerdict{} : JudgeOomMessage(found.front(), options);
}

std::string Words(const OomMessageVerdict& verdict) {
  std::string out;
  for (const std::string& sentence : verdict.evidence) out += sentence + "\n";
  return out;
}

bool OomMessageVerdictHasNote(const OomMessageVerdict& verdict, const std::string& name) {
  for (const trace::Note& note : verdict.notes) {
    if (note.name == name) return true;
  }
  return false;
}

double Rounded(std::int64_t bytes, double unit) { return std::round(static_cast<double>(bytes) / unit * 100) / 100; }

// A table computed by hand from three posted messages, in the units it was computed in.
struct Row {
  const char* text;
  OomVerdict kind;
  double outside_gib, gap_mib, need_gib, ceiling_gib, headroom_gib;
};
constexpr Row kTable[] = {{kTabularT4, OomVerdict::kCapacity, 0.88, 757.8, 15.01, 13.88, -1.13},
                          {kCutV100, OomVerdict::kFragmentation, 1.14, 1310.7, 13.37, 14.64, 1.26},
                          {kColabBert, OomVerdict::kFragmentation, 1.63, 378.9, 5.44, 5.80, 0.36}};

TEST(OomMessageVerdictTest, ThreePostedMessages) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(row.text);
    const OomMessageVerdict verdict = Judge(row.text);
    EXPECT_EQ(verdict.kind, row.kind);
    EXPECT_TRUE(verdict.verdict_certain);
    EXPECT_DOUBLE_EQ(Rounded(verdict.outside->value_bytes, kGibi), row.outside_gib);
    EXPECT_NEAR(static_cast<double>(verdict.gap->value_bytes) / kMebi, row.gap_mib, 0.05);
    const OomAccounting& parts = verdict.accounting;
    EXPECT_DOUBLE_EQ(Rounded(static_cast<std::int64_t>(*parts.allocated_bytes + *verdict.tried_bytes), kGibi),
                     row.need_gib);
    EXPECT_DOUBLE_EQ(Rounded(static_cast<std::int64_t>(*parts.total_bytes - *parts.outside_bytes), kGibi),
                     row.ceiling_gib);
    EXPECT_DOUBLE_EQ(Rounded(verdict.headroom->value_bytes, kGibi), row.headroom_gib);
    EXPECT_EQ(*parts.total_bytes,
              *parts.allocated_bytes + *parts.stranded_bytes + *parts.outside_bytes + *parts.free_bytes);
    EXPECT_FALSE(parts.live_bytes || parts.rounding_bytes || parts.pending_bytes || parts.whole_free_bytes);
    EXPECT_FALSE(parts.private_pool_bytes);
    // Three figures of +-0.005 GiB or MiB each bound the error of the headroom.
    EXPECT_LE(verdict.headroom->high_bytes - verdict.headroom->low_bytes, static_cast<std::int64_t>(0.0305 * kGibi));
    EXPECT_LE(verdict.headroom->low_bytes, verdict.headroom->value_bytes);
  }
}

TEST(OomMessageVerdictTest, CapacityNamesTheWrongLever) {
  const OomMessageVerdict verdict = Judge(kTabularT4);
  const std::string words = Words(verdict);
  EXPECT_THAT(words, HasSubstr("short by 1.13 GiB"));
  EXPECT_THAT(words, HasSubstr("no allocator setting can help"));
  EXPECT_THAT(words, HasSubstr("13.06 GiB against allocated 12.32 GiB is not \">>\": max_split_size_mb"));
  EXPECT_THAT(words, HasSubstr("wrong lever"));
}

TEST(OomMessageVerdictTest, FragmentationSaysByHowMuch) {
  const OomMessageVerdict verdict = Judge(kCutV100);
  EXPECT_THAT(Words(verdict), HasSubstr("fits with 1.26 GiB to spare"));
  EXPECT_THAT(Words(verdict), HasSubstr("misses it by 18.56 MiB"));
  EXPECT_THAT(Words(verdict), HasSubstr("make 13.37 GiB; this allocator can hold at most 14.64 GiB"));
  EXPECT_DOUBLE_EQ(Rounded(verdict.missing->value_bytes, kMebi), 18.56);
  const OomMessageVerdict colab = Judge(kColabBert);
  EXPECT_THAT(Words(colab), HasSubstr("fits with 363.82 MiB to spare"));
  EXPECT_THAT(Words(colab), HasSubstr("1.63 GiB outside this allocator may include another process or an earlier run "
                                      "(a context alone is 0.5 to 1.8 GiB): not in this message"));
  EXPECT_TRUE(OomMessageVerdictHasNote(colab, "outside_not_named"));
}

// Where a device is full to the last, what it reported free is no sign of a limit.
TEST(OomMessageVerdictTest, TheLastOfADeviceIsNoLimit) {
  const auto judge = [](const std::string& free) {
    return Judge("CUDA out of memory. Tried to allocate 24.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which " +
                 free +
                 " is free. Including non-PyTorch memory, this process has 7.90 GiB memory in use. Of the allocated "
                 "memory 7.10 GiB is allocated by PyTorch, and 40.00 MiB is reserved by PyTorch but unallocated.");
  };
  const OomMessageVerdict last = judge("60.00 MiB");
  EXPECT_EQ(last.kind, OomVerdict::kNearlyFull);
  EXPECT_FALSE(last.verdict_certain);
  EXPECT_THAT(Words(last), HasSubstr("60.00 MiB were left, which were not given"));
  EXPECT_TRUE(OomMessageVerdictHasNote(last, "free_to_the_last"));
  EXPECT_EQ(judge("800.00 MiB").kind, OomVerdict::kLimit);
}

TEST(OomMessageVerdictTest, OneRequestAboveTheWholeDevice) {
  const OomMessageVerdict verdict = Judge(
      "CUDA out of memory. Tried to allocate 96.00 GiB. GPU 0 has a total capacity of 47.40 GiB of which 40.10 GiB is "
      "free. Including non-PyTorch memory, this process has 7.20 GiB memory in use. Of the allocated memory 6.40 GiB "
      "is allocated by PyTorch, and 310.00 MiB is reserved by PyTorch but unallocated.");
  EXPECT_EQ(verdict.kind, OomVerdict::kCapacity);
  EXPECT_THAT(Words(verdict), HasSubstr("the one request of 96.00 GiB is more than the 47.40 GiB that the device has"));
}

TEST(OomMessageVerdictTest, TheRequestBehindTheSegment) {
  const auto request = [](const std::string& tried) {
    return *Judge("CUDA out of memory. Tried to allocate " + tried +
                  " (GPU 0; 7.43 GiB total capacity; 1.00 GiB already "
                  "allocated; 0 bytes free; 1.00 GiB reserved in total by PyTorch)")
                .request_interval;
  };
  const std::int64_t mib = 1 << 20;
  EXPECT_EQ(request("2.00 MiB").low_bytes, 1);
  EXPECT_EQ(request("2.00 MiB").high_bytes, mib);
  EXPECT_EQ(request("20.00 MiB").low_bytes, mib + 1);
  EXPECT_EQ(request("20.00 MiB").high_bytes, 10 * mib);
  EXPECT_EQ(request("24.00 MiB").low_bytes, 22 * mib + 1);
  EXPECT_EQ(request("24.00 MiB").high_bytes, 24 * mib);
  EXPECT_EQ(Judge(kCutV100).request_interval->low_bytes, 218 * mib + 1);
  EXPECT_EQ(Judge(kCutV100).request_interval->high_bytes, 220 * mib);
  // 2.69 GiB prints for segments of 2750 to 2758 MiB.
  EXPECT_EQ(Judge(kTabularT4).request_interval->low_bytes, 2748 * mib + 1);
  EXPECT_EQ(Judge(kTabularT4).request_interval->high_bytes, 2758 * mib);
  EXPECT_FALSE(Judge(kTabularT4).request_bytes);
  EXPECT_EQ(Judge(kGgml).request_bytes, 151851674624u);
  EXPECT_EQ(Judge(kCached).request_interval->high_bytes, mib);
  EXPECT_FALSE(Judge(kMps).request_interval);
}

TEST(OomMessageVerdictTest, KindsByMessage) {
  struct Case {
    const char* text;
    OomVerdict kind;
    bool certain;
  };
  const Case cases[] = {
      {kCached, OomVerdict::kNearlyFull, true},
      {kAllowed, OomVerdict::kCapacity, true},     // 37.25 GiB on a 23.68 GiB device: the limit is not the point
      {kTypo, OomVerdict::kNearlyFull, true},      // the process named is this one
      {kNeighbours, OomVerdict::kOutside, false},  // enough was free again when it was looked at
      {kCommentWsl, OomVerdict::kCapacity, true},
      {kPrivatePools, OomVerdict::kNearlyFull, true},
      {kCapacityAllowed, OomVerdict::kLimit, true},
      {kRenamedConf, OomVerdict::kNearlyFull, true},
      {kHip, OomVerdict::kOutside, false},  // 69 GiB outside, and nobody named
      {kXpu, OomVerdict::kCapacity, true},
      {kNpu, OomVerdict::kOutside, false},
      {kMps, OomVerdict::kLimit, true},
      {kPlain, OomVerdict::kUnknown, false},
      {kBfcRounded, OomVerdict::kUnknown, false},
      {kBfcWarning, OomVerdict::kHealthy, true},
      {kJax, OomVerdict::kUnknown, false},
      {kCupyOld, OomVerdict::kUnknown, false},
      {kCupyLimit, OomVerdict::kLimit, true},
      {kCupyNoLimit, OomVerdict::kUnknown, false},
      {kRmmPool, OomVerdict::kLimit, true},
      {kPaddle, OomVerdict::kUnknown, false}};
  for (const Case& expected : cases) {
    const OomMessageVerdict verdict = Judge(expected.text);
    EXPECT_EQ(VerdictName(verdict.kind), VerdictName(expected.kind)) << expected.text << "\n" << Words(verdict);
    EXPECT_EQ(verdict.verdict_certain, expected.certain) << expected.text << "\n" << Words(verdict);
  }
}

TEST(OomMessageVerdictTest, ACapacityFromTheUserSettlesMore) {
  OomJudgeOptions options;
  options.capacity_bytes = std::uint64_t{16} << 30;
  EXPECT_EQ(Judge(kJax, options).kind, OomVerdict::kCapacity);
  EXPECT_EQ(Judge(kGgml, options).kind, OomVerdict::kCapacity);
  EXPECT_EQ(Judge(kCupyOld, options).kind, OomVerdict::kUnknown);
  // A message that tells its capacity is believed first.
  EXPECT_EQ(Judge(kCutV100, options).accounting.total_bytes, Judge(kCutV100).accounting.total_bytes);
}

TEST(OomMessageVerdictTest, PrivatePoolsFreeBlocksAreHoles) {
  const OomMessageVerdict verdict = Judge(kPrivatePools);
  const OomAccounting& parts = verdict.accounting;
  EXPECT_NEAR(static_cast<double>(*parts.allocated_bytes), 72.36 * kGibi - 436 * kMebi, 1);
  EXPECT_EQ(*parts.private_pool_bytes, 436u << 20);
  EXPECT_NEAR(static_cast<double>(*parts.stranded_bytes), 71.59 * kMebi, 1);
  EXPECT_NEAR(static_cast<double>(*parts.reserved_bytes), 72.36 * kGibi + 71.59 * kMebi, 2);
  EXPECT_EQ(*parts.total_bytes, *parts.allocated_bytes + *parts.stranded_bytes + *parts.private_pool_bytes +
                                    *parts.outside_bytes + *parts.free_bytes);
  EXPECT_TRUE(OomMessageVerdictHasNote(verdict, "private_pool_blocks_are_free"));
  EXPECT_EQ(Judge(kRenamedConf).accounting.private_pool_bytes, 0u);
}

TEST(OomMessageVerdictTest, NamedNeighboursAreProof) {
  const OomMessageVerdict verdict = Judge(
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 264.00 MiB is "
      "free. "
      "Process 11 has 14.85 GiB memory in use. Including non-PyTorch memory, this process has 8.04 GiB memory in use. "
      "Of "
      "the allocated memory 7.63 GiB is allocated by PyTorch, and 40.11 MiB is reserved by PyTorch but unallocated.");
  EXPECT_EQ(verdict.kind, OomVerdict::kOutside);
  EXPECT_TRUE(verdict.verdict_certain);
  EXPECT_THAT(Words(verdict), HasSubstr("14.85 GiB"));
  EXPECT_LT(verdict.headroom->high_bytes, 0);
}

TEST(OomMessageVerdictTest, AProcessNamedInsideAContainerIsItself) {
  const OomMessageVerdict verdict = Judge(kTypo);
  EXPECT_FALSE(verdict.others);
  EXPECT_TRUE(OomMessageVerdictHasNote(verdict, "own_process_by_size"));
}

TEST(OomMessageVerdictTest, NeighboursThatAreNotEnoughChangeNothing) {
  EXPECT_EQ(
      Judge("CUDA out of memory. Tried to allocate 12.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 264.00 "
            "MiB is free. Process 11 has 2.00 GiB memory in use. Including non-PyTorch memory, this process has 21.00 "
            "GiB memory in use. Of the allocated memory 20.50 GiB is allocated by PyTorch, and 40.11 MiB is reserved "
            "by PyTorch but unallocated.")
          .kind,
      OomVerdict::kCapacity);
}

TEST(OomMessageVerdictTest, RoundingThatCouldFlipIsSaid) {
  const OomMessageVerdict verdict = Judge(
      "Tried to allocate 20.00 MiB (GPU 0; 1.96 GiB total capacity; 1.24 GiB already allocated; 2.88 MiB free; 1.25 "
      "GiB "
      "reserved in total by PyTorch)");
  EXPECT_FALSE(verdict.verdict_certain);
  EXPECT_TRUE(OomMessageVerdictHasNote(verdict, "rounding_could_flip"));
  EXPECT_LT(verdict.headroom->low_bytes, 0);
  EXPECT_GE(verdict.headroom->high_bytes, 0);
}

TEST(OomMessageVerdictTest, HolesThatFillALimitAreFragmentation) {
  const OomMessageVerdict verdict = Judge(
      "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 23.68 GiB total capacity; 5.00 GiB already allocated; "
      "10.00 GiB "
      "free; 10.00 GiB allowed; 9.80 GiB reserved in total by PyTorch)");
  EXPECT_EQ(verdict.kind, OomVerdict::kFragmentation);
  EXPECT_THAT(Words(verdict), HasSubstr("the holes fill the 10.00 GiB allowed"));
}

TEST(OomMessageVerdictTest, UnknownStaysNull) {
  const OomMessageVerdict verdict = Judge(kPlain);
  EXPECT_FALSE(verdict.tried_bytes || verdict.request_interval || verdict.headroom || verdict.outside || verdict.gap);
  EXPECT_FALSE(verdict.accounting.total_bytes || verdict.accounting.free_bytes || verdict.accounting.stranded_bytes);
  EXPECT_THAT(Words(verdict), HasSubstr("no figures"));
}

TEST(OomMessageVerdictTest, WhatToDoNextIsExact) {
  const OomMessageVerdict verdict = Judge(kCutV100);
  EXPECT_EQ(verdict.next_lines,
            (std::vector<std::string>{"ashlar record -- python YOUR_PROGRAM.py",  // needs no change of the program
                                      "import ashlar_gpu; ashlar_gpu.on_oom()",
                                      "torch.cuda.memory._record_memory_history(max_entries=100000)",
                                      "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"}));
  EXPECT_FALSE(verdict.next_step.empty());
  EXPECT_EQ(Judge(kHip).next_lines, verdict.next_lines);  // the same names there
  EXPECT_EQ(Judge(kNpu).next_lines.at(1), "torch.npu.memory._dump_snapshot(\"snapshot.pickle\")");
  EXPECT_THAT(Judge(kCached).next_step, HasSubstr("PyTorch 2.1 or later"));  // 1.3 records no snapshots
  EXPECT_EQ(Judge(kJax).next_lines.at(0), "jax.profiler.save_device_memory_profile(\"memory.prof\")");
  for (const char* text : kAll) {
    const OomMessageVerdict any = Judge(text);
    EXPECT_FALSE(any.next_step.empty()) << text;
    EXPECT_FALSE(any.next_lines.empty()) << text;
    EXPECT_FALSE(any.levers.empty()) << text;
    for (const OomTry& one : any.tries) EXPECT_FALSE(one.what.empty()) << text;
  }
}

std::string NoteText(const OomMessageVerdict& verdict, const std::string& name) {
  for (const trace::Note& note : verdict.notes) {
    if (note.name == name) return note.message;
  }
  return "";
}

TEST(OomMessageVerdictTest, WhatIsNotToldIsNamed) {
  EXPECT_FALSE(OomMessageVerdictHasNote(Judge(kCutV100), "not_told"));
  EXPECT_EQ(NoteText(Judge(kJax), "not_told"),
            "not in this message: the device's capacity, what the device had free, what was allocated, what was "
            "reserved, what is outside this allocator");
  EXPECT_THAT(NoteText(Judge(kPlain), "not_told"), HasSubstr("the size asked for"));
  // Every figure is known or named, in every family.
  for (const char* text : kAll) {
    const OomMessageVerdict verdict = Judge(text);
    const std::string named = NoteText(verdict, "not_told");
    const auto is_named = [&named](const char* what) { return named.find(what) != std::string::npos; };
    EXPECT_EQ(verdict.tried_bytes.has_value(), !is_named("asked for")) << text;
    EXPECT_EQ(verdict.accounting.total_bytes.has_value(), !is_named("capacity")) << text;
    EXPECT_EQ(verdict.accounting.free_bytes.has_value(), !is_named("free")) << text;
    EXPECT_EQ(verdict.accounting.allocated_bytes.has_value(), !is_named("was allocated")) << text;
    EXPECT_EQ(verdict.outside.has_value(), !is_named("outside")) << text;
  }
}

TEST(OomMessageVerdictTest, ImpossibleFiguresAreNamedAndNotReasonedWith) {
  const OomMessageVerdict wrapped = Judge(
      "CUDA out of memory. Tried to allocate 3.74 GiB. GPU 0 has a total capacity of 4.00 GiB of which "
      "17179869184.00 GiB is free. Of the allocated memory 1.20 GiB is allocated by PyTorch, and 844.14 MiB is "
      "reserved by PyTorch but unallocated.");
  EXPECT_EQ(wrapped.kind, OomVerdict::kCapacity);
  EXPECT_THAT(Words(wrapped), HasSubstr("1.20 GiB allocated and 3.74 GiB more are above the 4.00 GiB"));
  EXPECT_THAT(NoteText(wrapped, "impossible_figure"), HasSubstr("17179869184.00 GiB (free) cannot be memory"));
  EXPECT_FALSE(wrapped.accounting.free_bytes.has_value());
  const OomMessageVerdict more_free = Judge(
      "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 4.00 GiB total capacity; 1.00 GiB already allocated; "
      "5.00 GiB free; 2.00 GiB reserved in total by PyTorch)");
  EXPECT_EQ(more_free.kind, OomVerdict::kUnknown);
  EXPECT_THAT(NoteText(more_free, "impossible_figure"), HasSubstr("5.00 GiB free is more than the total capacity"));
  EXPECT_THAT(Words(more_free), HasSubstr("1.00 GiB were held in holes; what the device had free is not in this"));
}

// Messages beside PyTorch's own: the verdict, and the words and the advice that belong to who raised them.
TEST(OomMessageVerdictTest, WhoRaisedItIsAnswered) {
  struct Case {
    const char* text;
    OomVerdict kind;
    const char* says;
    const char* lever;
  };
  constexpr char kAsync[] =
      "Allocation on device 1 would exceed allowed memory. (out of memory)\nCurrently allocated     : 9.00 "
      "GiB\nRequested "
      "              : 2.00 GiB\nDevice limit            : 8.00 GiB\nFree (according to CUDA): 0 bytes\n";
  const Case cases[] = {
      {kAsync, OomVerdict::kCapacity, "spilled into host memory", "PyTorch's own allocator"},
      {"slurmstepd: error: Detected 2 oom_kill events in StepId=5.1.", OomVerdict::kHostMemory, "job's memory limit",
       "--mem"},
      {"DefaultCPUAllocator: not enough memory: you tried to allocate 73400320 bytes.", OomVerdict::kHostMemory,
       "not the device", "host"},
      {"RuntimeError: Invalid buffer size: 40.00 GiB", OomVerdict::kLimit, "one Metal buffer", ""},
      {"Out of gpu memory. Free: 4096 Asked: 1048576 !!!", OomVerdict::kCapacity, "misses it by 1020.00 KiB", ""},
      {"ROCm error: out of memory\n  current device: 0, in function alloc at a.cu:1", OomVerdict::kUnknown, "", "-ngl"},
      {"Failed to allocate memory for requested buffer of size 5044031582654955520", OomVerdict::kUnknown,
       "cannot be memory", "wrong size"},
      {"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", OomVerdict::kLimit,
       "--mem-fraction-static", "--mem-fraction-static"},
      {"Error in memory profiling. Initial free memory 2.00 GiB, current free memory 3.00 GiB. This",
       OomVerdict::kUnknown, "not out of memory", ""}};
  for (const Case& expected : cases) {
    const OomMessageVerdict verdict = Judge(expected.text);
    EXPECT_EQ(VerdictName(verdict.kind), VerdictName(expected.kind)) << expected.text;
    EXPECT_THAT(Words(verdict), HasSubstr(expected.says)) << expected.text;
    EXPECT_THAT(verdict.levers, HasSubstr(expected.lever)) << expected.text;
    for (const std::string& line : verdict.next_lines) EXPECT_THAT(line, testing::Not(HasSubstr("torch.cuda"))) << line;
  }
}

// 0.80 of 10 GiB are 8 GiB; 7 + 1.5 + 0.25 pass them. From 0.88 on something is left.
TEST(OomMessageVerdictTest, AnEnginesSumSaysWhatToSet) {
  const OomMessageVerdict verdict = Judge(
      "the current vLLM instance can use total_gpu_memory (10.00GiB) x gpu_memory_utilization (0.80) = 8.00GiB\nmodel "
      "weights take 7.00GiB; non_torch_memory takes 0.25GiB; PyTorch activation peak memory takes 1.50GiB; the rest of "
      "the "
      "memory reserved for KV Cache is -0.75GiB.\nValueError: No available memory for the cache blocks. Try");
  EXPECT_EQ(verdict.kind, OomVerdict::kLimit);
  EXPECT_THAT(Words(verdict), HasSubstr("short by 768.00 MiB"));
  EXPECT_THAT(verdict.tries.front().what, HasSubstr("gpu_memory_utilization to 0.88 or more: 0.88 leaves 51.2"));
  EXPECT_EQ(verdict.tries.front().lines.at(1), "--gpu-memory-utilization 0.88  # of vllm serve");
}

// What to try first has its value where the message has the figures, and whose figure it is.
TEST(OomMessageVerdictTest, AValueToSetIsInTheFirstTry) {
  struct Case {
    const char* text;
    const char* says;
    const char* line;  // empty: none
  };
  constexpr char kLoaded[] =
      "print_info: n_layer = 40\nusing device CUDA0 (NVIDIA L4) - 6000 MiB free\n"
      "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8000.00 MiB on device 0: cudaMalloc failed: out of "
      "memory\n"
      "alloc_tensor_range: failed to allocate CUDA0 buffer of size 8388608000\n";
  const std::string command = absl::StrCat("$ llama-server -m m.gguf -ngl 99 -c 4096\n", kLoaded);
  const std::string weights = absl::StrCat(command, "error loading model: unable to allocate CUDA0 buffer\n");
  const Case cases[] = {
      {"models's max seq len (8192), (4.00 GiB KV cache is needed, which is larger than the available KV cache memory "
       "(1.00 GiB). Based on the available memory, the estimated maximum model length is 2032.",
       "2,032 tokens, which vLLM itself says", "max_model_len=2032  # in LLM(...)"},
      {"with the model's max seq len (8192), 4.00 GiB KV cache is needed, which is larger than the available KV cache "
       "memory (1.00 GiB).",
       "from 8,192 to about 2,048 tokens", "max_model_len=2048  # in LLM(...)"},
      {"Free memory on device (5.9/23.6 GiB) on startup is less than desired GPU memory utilization (0.9, 21.2 GiB).",
       "end what else holds the device", "nvidia-smi"},
      {"CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please",
       "halve max_num_seqs from 256", "max_num_seqs=128  # in LLM(...)"},
      {weights.c_str(), "lower -ngl to 30 or less", "-ngl 30"},         // of 41 layers 6000 of 8000 MiB
      {command.c_str(), "of the 41 layers that lie there", "-ngl 20"},  // what was asked for may be the cache
      {kLoaded, "fewer layers on the device", ""},
      {"Not enough memory to handle 4096 prefill tokens. You need to decrease", "from 4,096",
       "--max-batch-prefill-tokens 2048"},
      {"slurmstepd: error: Step 7.0 exceeded memory limit (2097152 > 1048576), being killed", "sbatch",
       "#SBATCH --mem="},
      {"slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0.", "ReqMem", "sacct -j 4711 "},
      {"slurmstepd: error: Detected 2 oom-kill event(s) in StepId=4712.batch", "ReqMem", "sacct -j 4712 "},
      {"Memory cgroup out of memory: Killed process 9 (python) total-vm:9000kB, anon-rss:2097152kB", "above 2.00 GiB",
       "cat /sys/fs/cgroup/memory.max"},
      {"Failed to allocate memory for requested buffer of size 5044031582654955520", "wrong size", ""},
      {"RuntimeError: Invalid buffer size: 40.00 GiB", "split the tensor", ""},
      {"RuntimeError: MPS backend out of memory (MPS allocated: 10.20 GiB, other allocations: 1.30 GiB, max allowed: "
       "12.00 GiB). Tried to allocate 900.00 MiB on private pool.",
       "halve the batch", ""}};
  for (const Case& expected : cases) {
    const OomMessageVerdict verdict = Judge(expected.text);
    ASSERT_FALSE(verdict.tries.empty()) << expected.text;
    const OomTry& first = verdict.tries.front();
    EXPECT_THAT(first.what, HasSubstr(expected.says)) << expected.text;
    EXPECT_EQ(first.lines.empty(), *expected.line == '\0') << expected.text;
    if (!first.lines.empty()) {
      EXPECT_THAT(first.lines.front(), testing::StartsWith(expected.line)) << expected.text;
    }
    EXPECT_THAT(verdict.levers, testing::StartsWith(first.what)) << expected.text;
  }
}

TEST(OomMessageVerdictTest, WhatThisProcessHoldsIsNotAnothers) {
  const OomMessageVerdict verdict = Judge(
      "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 512.00 MiB is "
      "free. "
      "Including non-PyTorch memory, this process has 15.25 GiB memory in use. Of the allocated memory 12.00 GiB is "
      "allocated "
      "by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.");
  ASSERT_TRUE(verdict.own_outside_bytes.has_value());
  EXPECT_NEAR(static_cast<double>(*verdict.own_outside_bytes) / kGibi, 3.15, 0.01);
  EXPECT_THAT(Words(verdict), HasSubstr("This process holds 15.25 GiB"));
  EXPECT_THAT(Words(verdict), testing::Not(HasSubstr("which the message advises")));
}

}  // namespace
}  // namespace ashlar::analyses
