#include "analyzer/gpus/gpu_table.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "allocator/base/nearest_word.h"
#include "allocator/base/units.h"

namespace ashlar::gpus {
namespace {

// Totals and contexts are from two kinds of posted output:
//   deviceQuery, and torch.cuda.get_device_properties, which print cudaDeviceProp;
//   out-of-memory messages, which print GiB with two decimals: a total to 10 MiB. A context is what "this process has"
//   less what is allocated and what is reserved but unallocated: to 10 MiB.
// Totals move by up to 1 % with the driver's release and with ECC.

constexpr GpuFact Measured(std::uint64_t value, absl::string_view source) { return {value, Mark::kMeasured, source}; }
constexpr GpuFact Published(std::uint64_t value, absl::string_view source) { return {value, Mark::kPublished, source}; }
constexpr GpuFact Assumed(std::uint64_t value, absl::string_view source) { return {value, Mark::kAssumed, source}; }
constexpr GpuFact MeasuredMib(std::uint64_t mib, absl::string_view source) { return Measured(mib * kMiB, source); }
// As an out-of-memory message prints it, in GiB with two decimals.
constexpr GpuFact Printed(double gib, absl::string_view source) {
  return MeasuredMib(static_cast<std::uint64_t>(gib * 1024), source);
}

constexpr absl::string_view kMessage = "a posted out-of-memory message";
constexpr absl::string_view kQuery = "posted deviceQuery output";
constexpr absl::string_view kProperties = "posted torch.cuda.get_device_properties output";
constexpr absl::string_view kListed = "TechPowerUp's list of GPUs";
constexpr std::uint64_t kMegahertz = 1000;  // in kHz
constexpr GpuFact Of(const GpuFact& fact, absl::string_view whose) { return Assumed(fact.value, whose); }

// A card but for its memory.
struct Chip {
  GpuFact sm_count, l2_bytes, clock_khz, memory_clock_khz, memory_bus_bits;
};

constexpr Chip Queried(std::uint64_t sms, std::uint64_t l2_bytes, std::uint64_t mhz, std::uint64_t memory_mhz,
                       std::uint64_t bus_bits) {
  return {Measured(sms, kQuery), Measured(l2_bytes, kQuery), Measured(mhz * kMegahertz, kQuery),
          Measured(memory_mhz * kMegahertz, kQuery), Measured(bus_bits, kQuery)};
}

constexpr Chip kP100 = Queried(56, 4 * kMiB, 1329, 715, 4096);
constexpr Chip kV100 = Queried(80, 6 * kMiB, 1530, 877, 4096);
constexpr Chip kT4 = Queried(40, 4 * kMiB, 1590, 5001, 256);
constexpr Chip kA10 = Queried(72, 6 * kMiB, 1695, 6251, 384);
constexpr Chip kA100Small = Queried(108, 40 * kMiB, 1410, 1215, 5120);
constexpr Chip kA100 = Queried(108, 40 * kMiB, 1410, 1593, 5120);
constexpr Chip kL4 = Queried(58, 48 * kMiB, 2040, 6251, 192);
constexpr Chip kL40s = Queried(142, 96 * kMiB, 2520, 9001, 384);
constexpr Chip kH100 = Queried(132, 50 * kMiB, 1980, 2619, 5120);
constexpr Chip kRtx3090 = Queried(82, 6 * kMiB, 1695, 9751, 384);
constexpr Chip kRtx4090 = Queried(128, 72 * kMiB, 2520, 10501, 384);
constexpr Chip kRtx5090 = Queried(170, 96 * kMiB, 2407, 14001, 512);
constexpr Chip kH200 = {Measured(132, kProperties), Measured(60 * kMiB, kProperties),
                        Measured(1980 * kMegahertz, "posted nvidia-smi output"),
                        Measured(3201 * kMegahertz, "posted nvidia-smi output"),
                        Published(6144, "NVIDIA's data sheet: six stacks of HBM3e")};
constexpr Chip kB200 = {Measured(148, kProperties), Measured(126 * kMiB, kProperties),
                        Assumed(1965 * kMegahertz, "no source: of the order of the H200's"),
                        Assumed(3906 * kMegahertz, "8 TB/s of the data sheet over 8192 bits"),
                        Published(8192, "NVIDIA's data sheet: eight stacks of HBM3e")};

constexpr Chip kRtx2060 = Queried(30, 3 * kMiB, 1680, 7001, 192);
constexpr Chip kRtx4060 = {Assumed(24, kListed), Assumed(24 * kMiB, kListed), Assumed(2460 * kMegahertz, kListed),
                           Assumed(8500 * kMegahertz, kListed), Assumed(128, kListed)};
constexpr Chip kRtx3070 = Queried(46, 4 * kMiB, 1725, 7001, 256);
constexpr Chip kRtx3080 = Queried(68, 5 * kMiB, 1710, 9501, 320);
constexpr Chip kRtx2080Ti = Queried(68, 5767168, 1545, 7000, 352);
constexpr Chip kRtx5070 = {Measured(48, "posted output of a program that prints it"), Assumed(48 * kMiB, kListed),
                           Assumed(2512 * kMegahertz, kListed), Assumed(14000 * kMegahertz, kListed),
                           Assumed(192, kListed)};
constexpr Chip kRtx4070 = {Assumed(46, kListed), Assumed(36 * kMiB, kListed), Assumed(2475 * kMegahertz, kListed),
                           Assumed(10504 * kMegahertz, kListed), Assumed(192, kListed)};
constexpr Chip kRtx3060 = Queried(28, 2359296, 1777, 7501, 192);
constexpr Chip kRtx5080 = {Measured(84, kProperties), Measured(64 * kMiB, kProperties),
                           Assumed(2617 * kMegahertz, kListed), Assumed(15000 * kMegahertz, kListed),
                           Assumed(256, kListed)};
constexpr Chip kRtx4060Ti16GB = Queried(34, 32 * kMiB, 2535, 9001, 128);
constexpr Chip kRtx4070TiSuper = {Measured(66, kProperties), Measured(48 * kMiB, kProperties),
                                  Assumed(2610 * kMegahertz, kListed), Assumed(10505 * kMegahertz, kListed),
                                  Assumed(256, kListed)};
constexpr Chip kRtx4080 = {Measured(76, kProperties), Assumed(64 * kMiB, kListed), Assumed(2505 * kMegahertz, kListed),
                           Assumed(11200 * kMegahertz, kListed), Assumed(256, kListed)};
constexpr Chip kRtxA4000 = Queried(48, 4 * kMiB, 1560, 7001, 256);
constexpr Chip kA30 = {Assumed(56, kListed), Assumed(24 * kMiB, kListed), Assumed(1440 * kMegahertz, kListed),
                       Assumed(1215 * kMegahertz, kListed), Assumed(3072, kListed)};
constexpr Chip kRtxA5000 = {Measured(64, kProperties), Measured(6 * kMiB, kProperties),
                            Assumed(1695 * kMegahertz, kListed), Assumed(8000 * kMegahertz, kListed),
                            Assumed(384, kListed)};
constexpr Chip kA40 = Queried(84, 6 * kMiB, 1740, 7251, 384);
constexpr Chip kL40 = {Assumed(142, kListed), Assumed(96 * kMiB, kListed), Assumed(2490 * kMegahertz, kListed),
                       Assumed(9000 * kMegahertz, kListed), Assumed(384, kListed)};
constexpr Chip kRtx6000Ada = {Measured(142, kProperties), Assumed(96 * kMiB, kListed),
                              Assumed(2505 * kMegahertz, kListed), Assumed(10000 * kMegahertz, kListed),
                              Assumed(384, kListed)};
constexpr Chip kRtxA6000 = Queried(84, 6 * kMiB, 1800, 8001, 384);
constexpr Chip kH100PCIe = {Measured(114, kQuery), Assumed(50 * kMiB, kListed), Measured(1755 * kMegahertz, kQuery),
                            Measured(1593 * kMegahertz, kQuery), Measured(5120, kQuery)};
constexpr Chip kH100NVL = {Assumed(132, kListed), Assumed(50 * kMiB, kListed), Assumed(1785 * kMegahertz, kListed),
                           Assumed(2620 * kMegahertz, kListed), Assumed(6016, kListed)};
constexpr Chip kRtxPro6000 = {Measured(188, kProperties), Measured(128 * kMiB, kProperties),
                              Assumed(2617 * kMegahertz, kListed), Assumed(13984 * kMegahertz, kListed),
                              Assumed(512, kListed)};
constexpr Chip kH20 = {Measured(78, kProperties), Of(kH100.l2_bytes, "that of H100-80GB"),
                       Of(kH100.clock_khz, "that of H100-80GB"), Of(kH100.memory_clock_khz, "that of H100-80GB"),
                       Of(kH100.memory_bus_bits, "that of H100-80GB")};
constexpr Chip kGH200 = Queried(132, 60 * kMiB, 1980, 2619, 6144);
constexpr Chip kGB10 = Queried(48, 24 * kMiB, 2418, 8533, 256);
constexpr Chip kB300 = {Measured(148, kProperties), Of(kB200.l2_bytes, "that of B200"),
                        Of(kB200.clock_khz, "that of B200"), Of(kB200.memory_clock_khz, "that of B200"),
                        Of(kB200.memory_bus_bits, "that of B200")};

constexpr Gpu Card(absl::string_view name, absl::string_view driver_name, absl::string_view library_gpu, int major,
                   int minor, const Chip& chip, GpuFact total_bytes, std::optional<GpuFact> lazy_context_bytes,
                   std::optional<GpuFact> eager_context_bytes = {}) {
  return {name,
          driver_name,
          library_gpu,
          major,
          minor,
          total_bytes,
          chip.sm_count,
          chip.l2_bytes,
          chip.clock_khz,
          chip.memory_clock_khz,
          chip.memory_bus_bits,
          eager_context_bytes,
          lazy_context_bytes};
}

constexpr Gpu Unified(Gpu gpu) {
  gpu.has_unified_memory = true;
  return gpu;
}

// Eager: V100: 1343 MiB with a probe tensor's segment of 2 MiB (Hugging Face, "Performance and Scalability", 2022). T4:
// total - reserved - free of a posted message (14.76 GiB, 13.06 GiB, 835.88 MiB) less 18 MiB of cuBLAS workspaces.
// Lazy contexts are of torch 2.1 and later.
constexpr Gpu kGpus[] = {
    Card("RTX2060", "NVIDIA GeForce RTX 2060", "T4", 7, 5, kRtx2060,
         Printed(5.79, "github.com/facebookresearch/meshrcnn issue 92"), std::nullopt),
    Card("RTX4060", "NVIDIA GeForce RTX 4060", "A100", 8, 9, kRtx4060, MeasuredMib(7807, kProperties), std::nullopt),
    Card("RTX3070", "NVIDIA GeForce RTX 3070", "A100", 8, 6, kRtx3070,
         Printed(7.78, "github.com/meta-llama/codellama issue 82"), std::nullopt),
    Card("RTX3080", "NVIDIA GeForce RTX 3080", "A100", 8, 6, kRtx3080,
         Printed(9.78, "github.com/zai-org/CogVideo issue 34"), std::nullopt),
    Card("RTX2080Ti", "NVIDIA GeForce RTX 2080 Ti", "T4", 7, 5, kRtx2080Ti,
         Printed(10.76, "github.com/JDAI-CV/image-captioning issue 11"), std::nullopt),
    Card("RTX5070", "NVIDIA GeForce RTX 5070", "A100", 12, 0, kRtx5070,
         MeasuredMib(11755, "posted output of a program that prints the card's memory"), std::nullopt),
    Card("RTX4070", "NVIDIA GeForce RTX 4070", "A100", 8, 9, kRtx4070, MeasuredMib(12002, kProperties), std::nullopt),
    Card("RTX3060", "NVIDIA GeForce RTX 3060", "A100", 8, 6, kRtx3060,
         Printed(11.75, "github.com/Kunhao-Liu/StyleGaussian issue 12"), std::nullopt),
    Card("T4", "Tesla T4", "T4", 7, 5, kT4, Printed(14.76, kMessage),
         MeasuredMib(137, "github.com/tsugumi-sys/SA-ConvLSTM-Pytorch issue 22"),
         MeasuredMib(887, "from a posted out-of-memory message")),
    Card("RTX5080", "NVIDIA GeForce RTX 5080", "A100", 12, 0, kRtx5080, MeasuredMib(15840, kProperties), std::nullopt),
    Card("RTX4060Ti-16GB", "NVIDIA GeForce RTX 4060 Ti", "A100", 8, 9, kRtx4060Ti16GB, Measured(16'722'821'120, kQuery),
         std::nullopt),
    Card("RTX4070TiSuper", "NVIDIA GeForce RTX 4070 Ti SUPER", "A100", 8, 9, kRtx4070TiSuper,
         MeasuredMib(15974, kProperties), std::nullopt),
    Card("RTXA4000", "NVIDIA RTX A4000", "A100", 8, 6, kRtxA4000,
         Printed(15.61, "github.com/DengKaiCQ/VGGT-Long issue 6"),
         MeasuredMib(210, "github.com/DengKaiCQ/VGGT-Long issue 6")),
    Card("RTX4080", "NVIDIA GeForce RTX 4080", "A100", 8, 9, kRtx4080, MeasuredMib(16049, kProperties), std::nullopt),
    Card("V100-16GB", "Tesla V100-SXM2-16GB", "V100", 7, 0, kV100, Printed(15.78, kMessage),
         MeasuredMib(366, "github.com/meta-llama/llama issue 918, with NCCL"),
         MeasuredMib(1341, "measured with NVML (Hugging Face, 2022)")),
    Card("P100-16GB", "Tesla P100-PCIE-16GB", "V100", 6, 0, kP100, Measured(17'071'734'784, kQuery),
         MeasuredMib(317, "a posted out-of-memory message of vLLM on two cards, with NCCL")),
    Card("L4", "NVIDIA L4", "A100", 8, 9, kL4, Printed(22.03, kMessage),
         MeasuredMib(250, "a posted out-of-memory message")),
    Card("A10", "NVIDIA A10", "A100", 8, 6, kA10, Measured(23'696'375'808, "posted deviceQuery output, driver 12.8"),
         MeasuredMib(223, "github.com/zai-org/CogVLM issue 236")),
    Card("RTXA5000", "NVIDIA RTX A5000", "A100", 8, 6, kRtxA5000, MeasuredMib(24138, kProperties), std::nullopt),
    Card("A30", "NVIDIA A30", "A100", 8, 0, kA30, MeasuredMib(24164, kProperties), std::nullopt),
    Card("RTX4090", "NVIDIA GeForce RTX 4090", "A100", 8, 9, kRtx4090,
         Printed(23.65, "github.com/tloen/llama-int8 issue 7"),
         MeasuredMib(473, "github.com/pinokiofactory/flux-webui issue 11")),
    Card("RTX3090", "NVIDIA GeForce RTX 3090", "A100", 8, 6, kRtx3090, Printed(23.70, "github.com/GaoLii/DSP issue 10"),
         MeasuredMib(258, "github.com/Tencent-Hunyuan/HY-Motion-1.0 issue 3")),
    Card("RTX5090", "NVIDIA GeForce RTX 5090", "A100", 12, 0, kRtx5090,
         Measured(33'668'857'856, "posted deviceQuery output, driver 13.0"),
         MeasuredMib(618, "github.com/TrajectoryCrafter/TrajectoryCrafter issue 20")),
    Card("V100-32GB", "Tesla V100-SXM2-32GB", "V100", 7, 0, kV100,
         Measured(34'072'559'616, "posted deviceQuery output, driver 12.9"),
         MeasuredMib(379, "a posted out-of-memory message")),
    Card("A100-40GB", "NVIDIA A100-SXM4-40GB", "A100", 8, 0, kA100Small,
         Printed(39.50, "github.com/TianheWu/CoSeR issue 10"), MeasuredMib(501, "github.com/TianheWu/CoSeR issue 10")),
    Card("A40", "NVIDIA A40", "A100", 8, 6, kA40, Measured(47'608'692'736, kQuery), std::nullopt),
    Card("L40", "NVIDIA L40", "A100", 8, 9, kL40, Printed(44.40, "github.com/QwenLM/Qwen3-VL issue 2097"),
         MeasuredMib(507, "github.com/QwenLM/Qwen3-VL issue 2097")),
    Card("L40S", "NVIDIA L40S", "A100", 8, 9, kL40s, Printed(44.42, "github.com/stepfun-ai/Step-Video-T2V issue 8"),
         MeasuredMib(419, "github.com/stepfun-ai/Step-Video-T2V issue 8")),
    Card("RTX6000Ada", "NVIDIA RTX 6000 Ada Generation", "A100", 8, 9, kRtx6000Ada,
         Printed(44.43, "github.com/DINGYANB/MTVCrafter issue 21"),
         MeasuredMib(429, "github.com/DINGYANB/MTVCrafter issue 21")),
    Card("RTXA6000", "NVIDIA RTX A6000", "A100", 8, 6, kRtxA6000,
         MeasuredMib(48670, "github.com/ultralytics/ultralytics issue 19084"), std::nullopt),
    Card("H100-80GB", "NVIDIA H100 80GB HBM3", "H100", 9, 0, kH100,
         Printed(79.11, "github.com/vllm-project/vllm issue 27508"),
         Assumed(524 * kMiB, "that of H200, the same chip; or give --context")),
    Card("H100PCIe", "NVIDIA H100 PCIe", "H100", 9, 0, kH100PCIe, MeasuredMib(81008, kProperties), std::nullopt),
    Card("A100-80GB", "NVIDIA A100-SXM4-80GB", "A100", 8, 0, kA100,
         Printed(79.25, "github.com/levihsu/OOTDiffusion issue 235"),
         MeasuredMib(409, "github.com/HiDream-ai/VAREdit issue 6")),
    Card("H100NVL", "NVIDIA H100 NVL", "H100", 9, 0, kH100NVL, Printed(93.00, "github.com/ali-vilab/VACE issue 56"),
         MeasuredMib(676, "github.com/ali-vilab/VACE issue 56")),
    Card("RTXPRO6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "A100", 12, 0, kRtxPro6000,
         MeasuredMib(97250, kProperties), std::nullopt),
    Card("H20", "NVIDIA H20", "H100", 9, 0, kH20, Printed(95.00, "github.com/Tencent-Hunyuan/Hunyuan3D-Part issue 9"),
         MeasuredMib(440, "github.com/Tencent-Hunyuan/Hunyuan3D-Part issue 9")),
    Card("GH200", "NVIDIA GH200 480GB", "H100", 9, 0, kGH200, Measured(102'005'473'280, kQuery), std::nullopt),
    Unified(Card("GB10", "NVIDIA GB10", "A100", 12, 1, kGB10,
                 Printed(121.69, "github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks issue 47"), std::nullopt)),
    Card("H200", "NVIDIA H200", "H200", 9, 0, kH200, MeasuredMib(143'156, kProperties),
         MeasuredMib(524, "a posted out-of-memory message")),
    Card("B200", "NVIDIA B200", "H200", 10, 0, kB200, MeasuredMib(182'631, kProperties),
         MeasuredMib(712, "a posted out-of-memory message, torch 2.9")),
    Card("B300", "NVIDIA B300 SXM6 AC", "H200", 10, 3, kB300, Printed(267.69, kMessage), std::nullopt),
};

constexpr CardMemory kOtherCards[] = {
    {"MI300X", Printed(191.98, "a posted out-of-memory message of PyTorch on an MI300X, in ROCm's blog on GPTQModel")},
};

struct OfCapability {
  int major, minor;
  std::uint64_t optin_kib, sm_kib, threads;
  std::uint64_t operations, narrow_operations;  // floating-point ones of a multiprocessor in a clock
};

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and "Arithmetic Instructions", where a
// multiplication with an addition is two operations. Those of 16 bits: the white papers of the architectures.
constexpr OfCapability kCapabilities[] = {
    {6, 0, 48, 64, 2048, 128, 256},    {7, 0, 96, 96, 2048, 128, 1024},    {7, 5, 64, 64, 1024, 128, 1024},
    {8, 0, 163, 164, 2048, 128, 2048}, {8, 6, 99, 100, 1536, 256, 1024},   {8, 9, 99, 100, 1536, 256, 1024},
    {9, 0, 227, 228, 2048, 256, 4096}, {10, 0, 227, 228, 2048, 256, 8192}, {10, 3, 227, 228, 2048, 256, 8192},
    {12, 0, 99, 100, 1536, 256, 1024}, {12, 1, 99, 100, 1536, 256, 1024}};

const OfCapability& CapabilityOf(const Gpu& gpu) {
  return *std::find_if(std::begin(kCapabilities), std::end(kCapabilities), [&](const OfCapability& row) {
    return row.major == gpu.compute_major && row.minor == gpu.compute_minor;
  });
}

std::string Plain(absl::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != ' ' && c != '-' && c != '_') out += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  for (const absl::string_view maker : {"nvidia", "tesla", "geforce", "amd", "instinct"}) {
    out = std::string(absl::StripPrefix(out, maker));
  }
  return out;
}

std::string NamesOf(const std::vector<const Gpu*>& gpus) {
  std::string out;
  for (const Gpu* gpu : gpus) absl::StrAppend(&out, out.empty() ? "" : ", ", gpu->name);
  return out;
}

const std::optional<GpuFact>& OwnContext(const Gpu& gpu, ModuleLoading loading) {
  return loading == ModuleLoading::kLazy ? gpu.lazy_context_bytes : gpu.eager_context_bytes;
}

const Gpu& Known(absl::string_view name) {
  return *std::find_if(std::begin(kGpus), std::end(kGpus), [&](const Gpu& gpu) { return gpu.name == name; });
}

const Gpu& ReferenceGpu(ModuleLoading loading) {
  return Known(loading == ModuleLoading::kLazy ? "A100-40GB" : "V100-16GB");
}

}  // namespace

absl::string_view MarkName(Mark mark) {
  switch (mark) {
    case Mark::kMeasured:
      return "measured";
    case Mark::kPublished:
      return "published";
    case Mark::kAssumed:
      return "assumed";
  }
  return "";
}

std::string CapabilityText(Capability of) { return absl::StrCat(of.major, ".", of.minor); }

absl::Span<const Gpu> Gpus() { return kGpus; }

absl::Span<const CardMemory> OtherCards() { return kOtherCards; }

const CardMemory* OtherCardNamed(absl::string_view name) {
  const auto found = std::find_if(std::begin(kOtherCards), std::end(kOtherCards),
                                  [&](const CardMemory& card) { return Plain(card.name) == Plain(name); });
  return found == std::end(kOtherCards) ? nullptr : found;
}

const Gpu* UnifiedMemoryGpu(std::uint64_t total_bytes) {
  constexpr double kMostApart = 0.04;
  const auto apart = [total_bytes](const Gpu& gpu) {
    const auto total = static_cast<double>(gpu.total_bytes.value);
    return std::abs(static_cast<double>(total_bytes) - total) / total;
  };
  const absl::Span<const Gpu> gpus = Gpus();
  const auto nearest =
      std::min_element(gpus.begin(), gpus.end(), [&apart](const Gpu& a, const Gpu& b) { return apart(a) < apart(b); });
  return nearest->has_unified_memory && apart(*nearest) <= kMostApart ? &*nearest : nullptr;
}

std::string GpuNames() {
  std::vector<const Gpu*> all;
  for (const Gpu& gpu : kGpus) all.push_back(&gpu);
  return NamesOf(all);
}

absl::StatusOr<Gpu> GpuNamed(absl::string_view name) {
  const std::string wanted = Plain(name);
  std::vector<const Gpu*> without_memory;
  for (const Gpu& gpu : kGpus) {
    const std::string name_of_table = Plain(gpu.name);
    if (wanted == name_of_table || wanted == Plain(gpu.driver_name)) return gpu;
    if (absl::StrCat("rtx", wanted) == name_of_table) return gpu;  // "A6000", as people call it
    if (!wanted.empty() && Plain(gpu.name.substr(0, gpu.name.find('-'))) == wanted) without_memory.push_back(&gpu);
  }
  if (without_memory.size() == 1) return *without_memory.front();
  if (!without_memory.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is several cards: ", NamesOf(without_memory)));
  }
  if (!name.empty() && std::all_of(name.begin(), name.end(), absl::ascii_isdigit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is the index of a device, and this takes a card by its name, such as L4"));
  }
  if (const CardMemory* const other = OtherCardNamed(name); other != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("of '", name, "' the memory alone is known: give --capacity ",
                     absl::StrReplaceAll(FormatBytes(other->total_bytes.value), {{" ", ""}})));
  }
  std::vector<std::string> names;
  for (const Gpu& gpu : kGpus) {
    // A series is no slip of the finger: a GTX is no RTX.
    if (!name.empty() && absl::ascii_toupper(static_cast<unsigned char>(name[0])) == gpu.name[0])
      names.emplace_back(gpu.name);
  }
  const std::string question = DidYouMean(name, names);
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is not in the table: ", question,
                                                 question.empty() ? "" : " ", "known are ", GpuNames(),
                                                 "; or leave it out and give --capacity"));
}

GpuLimits LimitsOf(const Gpu& gpu) {
  const OfCapability& limits = CapabilityOf(gpu);
  constexpr absl::string_view kGuide = "CUDA C++ Programming Guide, by compute capability";
  return {Published(limits.optin_kib * kKiB, kGuide), Published(limits.sm_kib * kKiB, kGuide),
          Published(limits.threads, kGuide)};
}

// GeForce cards of capabilities 7.5 and later add products of 16 bits up at half of the rate. The clock that is
// reported of LPDDR5X is that of its transfers, of which other memory has two a clock.
GpuSpeed SpeedOf(const Gpu& gpu) {
  const OfCapability& rates = CapabilityOf(gpu);
  const std::uint64_t clocks = gpu.sm_count.value * gpu.clock_khz.value * 1000;
  const bool is_geforce = absl::StrContains(gpu.driver_name, "GeForce");
  const std::uint64_t transfers = gpu.capability() == Capability{12, 1} ? 1 : 2;
  return {Assumed(clocks * rates.operations, "sm_count x clock_khz x operations a clock of the capability"),
          Assumed(clocks * rates.narrow_operations / (is_geforce ? 2 : 1),
                  "sm_count x clock_khz x operations a clock of the capability's tensor cores; GeForce: half of them"),
          Assumed(gpu.memory_clock_khz.value * 1000 * transfers * gpu.memory_bus_bits.value / 8,
                  "memory_clock_khz x memory_bus_bits x 2 transfers a clock; LPDDR5X: 1")};
}

GpuFact ContextOf(const Gpu& gpu, ModuleLoading loading) {
  const std::optional<GpuFact>& own = OwnContext(gpu, loading);
  return own.has_value() ? *own : UnknownContext(loading);
}

// With the sentence that says whose it is: made once, as facts are views.
GpuFact UnknownContext(ModuleLoading loading) {
  static const auto sentence = [](ModuleLoading of) {
    const Gpu& reference = ReferenceGpu(of);
    return absl::StrCat("that of ", reference.name, ", ", OwnContext(reference, of)->source, "; or give --context");
  };
  static const std::string kLazy = sentence(ModuleLoading::kLazy);
  static const std::string kEager = sentence(ModuleLoading::kEager);
  return Assumed(OwnContext(ReferenceGpu(loading), loading)->value, loading == ModuleLoading::kLazy ? kLazy : kEager);
}

std::pair<std::uint64_t, std::uint64_t> KnownContexts(ModuleLoading loading) {
  const std::uint64_t reference = OwnContext(ReferenceGpu(loading), loading)->value;
  std::pair<std::uint64_t, std::uint64_t> out(reference, reference);
  for (const Gpu& gpu : kGpus) {
    const std::uint64_t bytes = ContextOf(gpu, loading).value;
    out = {std::min(out.first, bytes), std::max(out.second, bytes)};
  }
  return out;
}

std::vector<std::pair<absl::string_view, GpuFact>> FactsOf(const Gpu& gpu) {
  const GpuLimits limits = LimitsOf(gpu);
  constexpr absl::string_view kCapability = "NVIDIA's list of CUDA GPUs";
  return {{"total_bytes", gpu.total_bytes},
          {"context_bytes", ContextOf(gpu, ModuleLoading::kLazy)},
          {"compute_major", Published(static_cast<std::uint64_t>(gpu.compute_major), kCapability)},
          {"compute_minor", Published(static_cast<std::uint64_t>(gpu.compute_minor), kCapability)},
          {"sm_count", gpu.sm_count},
          {"l2_bytes", gpu.l2_bytes},
          {"shared_per_block_optin", limits.shared_per_block_optin},
          {"shared_per_sm", limits.shared_per_sm},
          {"threads_per_sm", limits.threads_per_sm},
          {"clock_khz", gpu.clock_khz},
          {"memory_clock_khz", gpu.memory_clock_khz},
          {"memory_bus_bits", gpu.memory_bus_bits}};
}

}  // namespace ashlar::gpus
