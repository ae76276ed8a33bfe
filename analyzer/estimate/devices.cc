#include "analyzer/estimate/devices.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::estimate {
namespace {

// A total as an out-of-memory message prints it, in GiB with two decimals.
constexpr std::uint64_t Printed(double gib) { return static_cast<std::uint64_t>(gib * 1024) * kMiB; }

// Eager: V100: 1343 MiB with a probe tensor's segment of 2 MiB (Hugging Face, "Performance and Scalability", 2022). T4:
// total - reserved - free of a posted message (14.76 GiB, 13.06 GiB, 835.88 MiB) less 18 MiB of cuBLAS workspaces.
// Lazy: out-of-memory messages of torch 2.1 and later, posted by users: what "this process has" less what is allocated
// and what is reserved but unallocated; to 10 MiB, since the message prints GiB with two decimals.
constexpr DeviceFacts kDevices[] = {{"V100-16GB",
                                     Printed(15.78),
                                     "a posted out-of-memory message",
                                     "V100",
                                     {1341 * kMiB, "measured with NVML (Hugging Face, 2022)"},
                                     {366 * kMiB, "github.com/meta-llama/llama issue 918, with NCCL"}},
                                    {"T4",
                                     Printed(14.76),
                                     "a posted out-of-memory message",
                                     "T4",
                                     {887 * kMiB, "from a posted out-of-memory message"},
                                     {137 * kMiB, "github.com/tsugumi-sys/SA-ConvLSTM-Pytorch issue 22"}},
                                    {"A100-40GB",
                                     Printed(39.50),
                                     "github.com/TianheWu/CoSeR issue 10",
                                     "A100",
                                     {},
                                     {501 * kMiB, "github.com/TianheWu/CoSeR issue 10"}},
                                    {"A100-80GB",
                                     Printed(79.25),
                                     "github.com/levihsu/OOTDiffusion issue 235",
                                     "A100",
                                     {},
                                     {409 * kMiB, "github.com/HiDream-ai/VAREdit issue 6"}},
                                    {"H100-80GB", Printed(79.11), "github.com/vllm-project/vllm issue 27508", "H100"},
                                    {"RTX3090",
                                     Printed(23.70),
                                     "github.com/GaoLii/DSP issue 10",
                                     "A100",
                                     {},
                                     {258 * kMiB, "github.com/Tencent-Hunyuan/HY-Motion-1.0 issue 3"}},
                                    {"RTX4090",
                                     Printed(23.65),
                                     "github.com/tloen/llama-int8 issue 7",
                                     "A100",
                                     {},
                                     {473 * kMiB, "github.com/pinokiofactory/flux-webui issue 11"}}};

}  // namespace

absl::StatusOr<DeviceFacts> DeviceNamed(absl::string_view name) {
  std::string known;
  for (const DeviceFacts& device : kDevices) {
    if (absl::EqualsIgnoreCase(device.name, name)) return device;
    absl::StrAppend(&known, known.empty() ? "" : ", ", device.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is not in the table: ", known, "; or leave it out and give --capacity"));
}

DeviceFacts ReferenceDevice(bool is_lazy) { return *DeviceNamed(is_lazy ? "A100-40GB" : "V100-16GB"); }

std::pair<std::uint64_t, std::uint64_t> KnownContexts(bool is_lazy) {
  const std::uint64_t reference =
      *(is_lazy ? ReferenceDevice(true).lazy_context : ReferenceDevice(false).eager_context).bytes;
  std::pair<std::uint64_t, std::uint64_t> out(reference, reference);
  for (const DeviceFacts& device : kDevices) {
    const std::uint64_t bytes = (is_lazy ? device.lazy_context : device.eager_context).bytes.value_or(reference);
    out = {std::min(out.first, bytes), std::max(out.second, bytes)};
  }
  return out;
}

}  // namespace ashlar::estimate
