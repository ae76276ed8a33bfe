// What to try first, where a message has figures for it: the value to set, and what it is from.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/message/oom_message_evidence.h"

namespace ashlar::analyses::oom {
namespace {

using formats::Figure;
using formats::OomMessage;

std::uint64_t CountOf(const OomMessage& message, absl::string_view name) {
  const trace::Note* note = message.FindNote(name);
  return note == nullptr ? 0 : note->count;
}

// Of a note "name: text"; empty where there is none.
std::string TextOf(const OomMessage& message, absl::string_view name) {
  const trace::Note* note = message.FindNote(name);
  if (note == nullptr) return "";
  const std::size_t colon = note->message.find(": ");
  return note->message.substr(colon == std::string::npos ? 0 : colon + 2);
}

std::string Mebibytes(const Figure& figure) { return absl::StrCat((figure.high_bytes + kMiB - 1) / kMiB); }

std::optional<OomTry> ForWrongSize(const OomMessage& message) {
  if (message.tried || message.FindNote("impossible_figure") == nullptr) return std::nullopt;
  return OomTry{"look for a wrong size in the program (a damaged file or shape, an overflow): nothing needs so much"};
}

std::optional<OomTry> ForOneBuffer(const OomMessage& message) {
  if (message.FindNote("buffer_limit") == nullptr || message.family == "ggml") return std::nullopt;
  return OomTry{
      "split the tensor: a smaller batch, a shorter sequence, or attention that does not make the whole matrix"};
}

// How many layers of the model lie on the device; 0: the text does not tell it. All of them is one more than those that
// repeat.
std::uint64_t LayersOnDevice(const OomMessage& message) {
  const std::uint64_t told = CountOf(message, "layers_on_device");
  const std::uint64_t repeating = CountOf(message, "repeating_layers");
  const std::uint64_t asked = CountOf(message, "layers_asked");
  if (told > 0 || repeating == 0 || asked == 0) return told;
  return std::min(asked, repeating + 1);
}

// What is free holds so many layers of those whose weights were asked for in one piece.
std::uint64_t LayersThatFit(const OomMessage& message, std::uint64_t layers) {
  const bool is_of_weights = CountOf(message, "weights_of_model") > 0 && message.tried && message.free;
  if (!is_of_weights || message.tried->low_bytes <= message.free->high_bytes) return 0;
  const double share = static_cast<double>(message.free->low_bytes) / static_cast<double>(message.tried->high_bytes);
  return static_cast<std::uint64_t>(static_cast<double>(layers) * share);
}

std::optional<OomTry> ForLayers(const OomMessage& message) {
  if (message.family != "ggml") return std::nullopt;
  const std::uint64_t layers = LayersOnDevice(message);
  if (const std::uint64_t fitting = LayersThatFit(message, layers); fitting > 0) {
    return OomTry{absl::StrCat("lower -ngl to ", fitting, " or less: ", message.tried->InWords(),
                               " are the weights of ", layers, " layers, and ", message.free->InWords(), " are free"),
                  {absl::StrCat("-ngl ", fitting)}};
  }
  const std::uint64_t asked = CountOf(message, "layers_asked");
  const std::uint64_t from = layers > 0 ? layers : asked;
  if (from < 2) return std::nullopt;
  const std::string what = layers > 0
                               ? absl::StrCat("of the ", layers, " layers that lie there")
                               : absl::StrCat("of the ", asked, " asked for; it has to be below the model's own");
  return OomTry{absl::StrCat("put half as many layers on the device, ", what), {absl::StrCat("-ngl ", from / 2)}};
}

// A pool with a limit of its own: what it holds, and the request.
std::optional<OomTry> ForPool(const OomMessage& message) {
  const bool is_rmm = message.family == "rmm";
  if (!is_rmm && message.family != "cupy") return std::nullopt;
  if (!message.limit || !message.reserved || !message.tried) return std::nullopt;
  const std::uint64_t needed = message.reserved->high_bytes + message.tried->high_bytes;
  if (needed <= message.limit->low_bytes) return std::nullopt;
  return OomTry{absl::StrCat("raise the pool's limit from ", message.limit->InWords(), " to ", FormatBytes(needed),
                             " or more: what it holds, and the request"),
                {is_rmm ? absl::StrCat("maximum_pool_size=", needed)
                        : absl::StrCat("cupy.get_default_memory_pool().set_limit(size=", needed, ")")}};
}

std::optional<OomTry> ForArena(const OomMessage& message) {
  if (message.family != "onnxruntime" || message.FindNote("own_check") == nullptr) return std::nullopt;
  if (!message.free || !message.tried || message.tried->high_bytes <= message.free->low_bytes) return std::nullopt;
  return OomTry{absl::StrCat("raise gpu_mem_limit of the CUDA provider by ",
                             FormatBytes(message.tried->high_bytes - message.free->low_bytes),
                             " or more: ", message.tried->InWords(), " are asked for, and ", message.free->InWords(),
                             " of the limit are left")};
}

std::optional<OomTry> ForPrefill(const OomMessage& message) {
  const std::uint64_t tokens = CountOf(message, "prefill_tokens");
  if (message.family != "tgi" || tokens < 2) return std::nullopt;
  return OomTry{absl::StrCat("halve --max-batch-prefill-tokens from ", FormatCount(tokens)),
                {absl::StrCat("--max-batch-prefill-tokens ", tokens / 2)}};
}

std::optional<OomTry> ForWorkspace(const OomMessage& message) {
  if (message.family != "tensorrt" || !message.tried) return std::nullopt;
  return OomTry{
      absl::StrCat("lower setMemoryPoolLimit(WORKSPACE) of the builder's config (--memPoolSize of trtexec) "
                   "below the ",
                   message.tried->InWords(),
                   " asked for: a tactic that does not fit is skipped, and the "
                   "build goes on with another")};
}

std::optional<OomTry> ForLargestArray(const OomMessage& message) {
  const Figure* largest = message.Detail("largest");
  const std::string file = TextOf(message, "largest_file");
  if (message.family != "jax-xla" || largest == nullptr || file.empty()) return std::nullopt;
  return OomTry{absl::StrCat("make the largest array smaller: ", largest->InWords(), " made at ",
                             file.substr(file.find_last_of("/\\ ") + 1), ":", CountOf(message, "largest_line"))};
}

// --- the memory of the host ---

std::optional<OomTry> ForSlurm(const OomMessage& message) {
  if (message.family != "slurm") return std::nullopt;
  const Figure* held = message.Detail("held");
  if (held != nullptr && message.limit) {
    return OomTry{
        absl::StrCat("ask sbatch for more than ", FormatBytes(held->MiddleBytes()), ", which the job held, where ",
                     FormatBytes(message.limit->MiddleBytes()), " were allowed"),
        {absl::StrCat("#SBATCH --mem=", Mebibytes(*held), "M  # at least; the job was ended while it grew")}};
  }
  const std::uint64_t job = CountOf(message, "job");
  if (job == 0) return std::nullopt;
  return OomTry{"ask sbatch for more than the job had, which this line shows as ReqMem: --mem or --mem-per-cpu",
                {absl::StrCat("sacct -j ", job, " --format=JobID,ReqMem,MaxRSS,State")}};
}

std::optional<OomTry> ForContainer(const OomMessage& message) {
  const Figure* resident = message.Detail("anon_rss");
  if (message.family == "kernel-cgroup" && resident != nullptr) {
    return OomTry{
        absl::StrCat("raise the memory limit of the container or job above ", FormatBytes(resident->MiddleBytes()),
                     ", which the process held when it was ended; this line shows the limit inside it"),
        {"cat /sys/fs/cgroup/memory.max"}};
  }
  if (message.family != "cgroup" || !message.limit) return std::nullopt;
  return OomTry{absl::StrCat("raise the container's memory limit (resources.limits.memory) above the ",
                             FormatBytes(message.limit->MiddleBytes()), " that it has")};
}

std::optional<OomTry> ForRay(const OomMessage& message) {
  const Figure* task = message.Detail("task");
  if (message.family != "ray" || task == nullptr) return std::nullopt;
  return OomTry{absl::StrCat("tell Ray what a task takes, ", FormatBytes(task->MiddleBytes()),
                             ", so that it starts fewer at once"),
                {absl::StrCat("@ray.remote(memory=", task->high_bytes, ")")}};
}

std::optional<OomTry> ForModelOnHost(const OomMessage& message) {
  const Figure* available = message.Detail("available");
  if (message.family != "ollama" || available == nullptr) return std::nullopt;
  return OomTry{
      absl::StrCat("take a smaller model or a stronger quantization, or lower num_ctx, until it needs less "
                   "than the ",
                   FormatBytes(available->MiddleBytes()), " that the host has for it")};
}

std::optional<OomTry> ForHostArray(const OomMessage& message) {
  if (message.FindNote("host_memory") == nullptr || !message.tried) return std::nullopt;
  return OomTry{absl::StrCat("look at the size asked for, ", message.tried->InWords(),
                             ", and give the program as much of the host's memory, of which this line shows what is "
                             "free"),
                {"free -m"}};
}

// --- native programs ---

std::optional<OomTry> ForNativeCall(const OomMessage& message) {
  if (!IsOfNativeProgram(message)) return std::nullopt;
  const std::string call = TextOf(message, "library_call");
  const std::string at = TextOf(message, "call_at");
  if (call.empty() && at.empty()) return std::nullopt;
  return OomTry{absl::StrCat("print the size that the failing call asks for, ",
                             call.empty() ? "" : absl::StrCat("`", call, "`"), call.empty() || at.empty() ? "" : " ",
                             at.empty() ? "" : absl::StrCat("at ", at),
                             ": a wrong or overflown size fails in this way too")};
}

}  // namespace

bool IsOfNativeProgram(const OomMessage& message) {
  return absl::StartsWith(message.family, "native-") || message.family == "own-words";
}

std::optional<OomTry> FirstTryOf(const OomMessage& message) {
  for (const auto of : {ForWrongSize, ForOneBuffer, ForLayers, ForPool, ForArena, ForPrefill, ForWorkspace,
                        ForLargestArray, ForSlurm, ForContainer, ForRay, ForModelOnHost, ForHostArray, ForNativeCall}) {
    if (std::optional<OomTry> out = of(message)) return out;
  }
  return std::nullopt;
}

}  // namespace ashlar::analyses::oom
