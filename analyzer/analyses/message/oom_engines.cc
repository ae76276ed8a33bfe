// Serving engines refuse to start by sums of their own: the share of the device that they may take, what the weights
// and a trial run took of it, and what is left for the cache of keys and values. What those sums say to set.
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/message/oom_message_evidence.h"

namespace ashlar::analyses::oom {
namespace {

using formats::Figure;
using formats::OomMessage;

std::uint64_t BytesOf(const Figure* figure) { return figure == nullptr ? 0 : figure->MiddleBytes(); }

std::string Told(const Figure* figure) { return figure == nullptr ? "" : figure->InWords(); }

// "The share of 21.28 GiB: weights 18.57 GiB, activations 3.23 GiB, other memory of the process 0.06 GiB."
std::string SumOfVllm(const OomMessage& message) {
  const Figure* share = message.Detail("share");
  const Figure* weights = message.Detail("weights");
  if (weights == nullptr) return "";
  std::string out =
      share == nullptr ? "The log tells of it: weights " : absl::StrCat("Of the share of ", Told(share), ": weights ");
  absl::StrAppend(&out, Told(weights));
  if (const Figure* part = message.Detail("activations"))
    absl::StrAppend(&out, ", activations at their peak ", Told(part));
  if (const Figure* part = message.Detail("non_torch")) {
    absl::StrAppend(&out, ", memory of the process beside PyTorch ", Told(part));
  }
  if (const Figure* part = message.Detail("kv_cache")) absl::StrAppend(&out, ", left for the KV cache ", Told(part));
  if (const Figure* part = message.Detail("kv_cache_missing")) {
    absl::StrAppend(&out, "; they pass it by ", Told(part));
  }
  return out + ".";
}

// What vLLM takes before the cache has anything; nullopt: the text does not tell all of it.
std::optional<std::uint64_t> TakenOfVllm(const OomMessage& message) {
  if (message.Detail("weights") == nullptr || message.Detail("activations") == nullptr) return std::nullopt;
  return BytesOf(message.Detail("weights")) + BytesOf(message.Detail("activations")) +
         BytesOf(message.Detail("non_torch"));
}

// A setting of vLLM, as both its doors take it: max_model_len, 4096.
std::vector<std::string> LinesOfVllm(const std::string& name, const std::string& value) {
  return {absl::StrCat(name, "=", value, "  # in LLM(...)"),
          absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}}), " ", value, "  # of vllm serve")};
}

std::string Hundredths(double share) { return absl::StrFormat("%.2f", share); }

std::string ShortOfVllm(const OomMessage& message) {
  if (message.FindNote("startup_share") != nullptr && message.tried && message.free) {
    return absl::StrCat("Limit: vLLM refused to start: it asks for ", message.tried->InWords(), " of the device where ",
                        message.free->InWords(), " is free.");
  }
  if (const Figure* cache = message.Detail("kv_cache"); cache != nullptr && message.tried) {
    return absl::StrCat("Limit: vLLM refused to start: one request of the longest context needs ",
                        message.tried->InWords(), " of KV cache, and ", cache->InWords(), " is left for it.");
  }
  if (const trace::Note* count = message.FindNote("dummy_requests"); count != nullptr) {
    return absl::StrCat("Limit: vLLM's trial run of the sampler with ", FormatCount(count->count),
                        " requests at once found no memory; its size is max_num_seqs.");
  }
  if (const Figure* missing = message.Detail("kv_cache_missing"); missing != nullptr) {
    return absl::StrCat("Limit: vLLM's share of the device is short by ", FormatBytes(missing->MiddleBytes()),
                        " before the first block of the KV cache.");
  }
  return "Limit: gpu_memory_utilization leaves nothing for the KV cache beside the weights and the activations.";
}

// The rest of the device is somebody else's.
std::vector<OomTry> TriesForShare(const OomMessage& message) {
  std::vector<OomTry> out = {{"end what else holds the device; this line lists it", {"nvidia-smi"}}};
  OomTry lower = {"lower gpu_memory_utilization to what is free"};
  if (message.free && message.total && message.total->MiddleBytes() > 0) {
    const double free = static_cast<double>(message.free->MiddleBytes());
    const double share = std::floor(free / static_cast<double>(message.total->MiddleBytes()) * 100) / 100;
    lower.what = absl::StrCat("lower gpu_memory_utilization to ", Hundredths(share), ": ", message.free->InWords(),
                              " of ", message.total->InWords(), " are free");
    lower.lines = LinesOfVllm("gpu_memory_utilization", Hundredths(share));
  }
  out.push_back(std::move(lower));
  return out;
}

// The cache of one request is too large. A cache grows with the length at most as fast as the length.
std::vector<OomTry> TriesForLength(const OomMessage& message) {
  const trace::Note* fitting = message.FindNote("fitting_model_length");
  const trace::Note* asked = message.FindNote("max_model_len");
  const std::uint64_t needed = message.tried ? message.tried->MiddleBytes() : 0;
  OomTry shorter = {"lower max_model_len, the longest context"};
  if (fitting != nullptr) {
    shorter.what = absl::StrCat("set the longest context to ", FormatCount(fitting->count),
                                " tokens, which vLLM itself says would fit");
    shorter.lines = LinesOfVllm("max_model_len", absl::StrCat(fitting->count));
  } else if (asked != nullptr && needed > 0) {
    const double share = static_cast<double>(BytesOf(message.Detail("kv_cache"))) / static_cast<double>(needed);
    const auto length = static_cast<std::uint64_t>(static_cast<double>(asked->count) * share);
    shorter.what = absl::StrCat("lower the longest context from ", FormatCount(asked->count), " to about ",
                                FormatCount(length), " tokens, as the cache that is left to the one needed");
    shorter.lines = LinesOfVllm("max_model_len", absl::StrCat(length));
  }
  return {std::move(shorter),
          {"raise gpu_memory_utilization, where nothing else uses the device"},
          {"load the weights quantized, or raise tensor_parallel_size"}};
}

// Nothing is left for the cache: the least share, in hundredths, that leaves something.
std::vector<OomTry> TriesForCache(const OomMessage& message) {
  const OomTry smaller = {"load the weights quantized, or raise tensor_parallel_size"};
  const OomTry shorter = {"lower max_model_len, then max_num_seqs"};
  const std::optional<std::uint64_t> taken = TakenOfVllm(message);
  const auto total = static_cast<double>(message.total ? message.total->MiddleBytes() : 0);
  if (!taken || total <= 0) {
    return {{"raise gpu_memory_utilization (0.9 where it is not set), where nothing else uses the device"},
            smaller,
            shorter};
  }
  const double least = std::floor(static_cast<double>(*taken) / total * 100 + 1) / 100;
  if (least >= 1) {
    return {{absl::StrCat(smaller.what, ": no gpu_memory_utilization is large enough on this device")}, shorter};
  }
  return {{absl::StrCat("raise gpu_memory_utilization to ", Hundredths(least), " or more: ", Hundredths(least),
                        " leaves ", FormatBytes(static_cast<std::uint64_t>(least * total) - *taken), " for the cache, ",
                        Hundredths(least - 0.01), " would leave none"),
           LinesOfVllm("gpu_memory_utilization", Hundredths(least))},
          smaller,
          shorter};
}

std::vector<OomTry> TriesForVllm(const OomMessage& message) {
  if (message.FindNote("not_out_of_memory") != nullptr) {
    return {{"start it again once nothing else on the device begins or ends"}, {"give it a device of its own"}};
  }
  if (message.FindNote("sleep_mode") != nullptr) {
    return {{"free what took the memory while vLLM slept, before it wakes: the trainer's tensors, and its cache",
             {"torch.cuda.empty_cache()"}},
            {"lower gpu_memory_utilization"}};
  }
  if (message.FindNote("startup_share") != nullptr) return TriesForShare(message);
  if (const trace::Note* count = message.FindNote("dummy_requests"); count != nullptr && count->count > 1) {
    return {{absl::StrCat("halve max_num_seqs from ", FormatCount(count->count), ", the size of the trial run"),
             LinesOfVllm("max_num_seqs", absl::StrCat(count->count / 2))},
            {"lower gpu_memory_utilization, which leaves more of the device beside the KV cache"}};
  }
  if (message.FindNote("no_cache_blocks") != nullptr) return TriesForCache(message);
  if (message.Detail("kv_cache") != nullptr && message.tried) return TriesForLength(message);
  return {};
}

// What is static is weights and cache; of what is free at first, the fraction has to pass the weights' part.
std::vector<OomTry> TriesForSglang(const OomMessage& message) {
  const OomTry smaller = {"load the weights quantized, or raise --tp"};
  const OomTry shorter = {"halve --max-running-requests, then shorten --context-length"};
  const Figure* first = message.Detail("free_at_first");
  if (message.Detail("weights") == nullptr || first == nullptr || first->MiddleBytes() == 0) {
    return {{"raise --mem-fraction-static"}, smaller, shorter};
  }
  const auto free = static_cast<double>(first->MiddleBytes());
  const double weights = std::ceil(static_cast<double>(BytesOf(message.Detail("weights"))) / free * 100) / 100;
  return {{absl::StrCat("raise --mem-fraction-static above ", Hundredths(weights),
                        ", which the weights alone take of what was free; each 0.01 more is ",
                        FormatBytes(first->MiddleBytes() / 100), " of cache"),
           {absl::StrCat("--mem-fraction-static ", Hundredths(weights + 0.01), "  # at least")}},
          smaller,
          shorter};
}

void WriteSglang(const OomMessage& message, std::vector<std::string>& out) {
  const Figure* weights = message.Detail("weights");
  const Figure* left = message.Detail("free_after_weights");
  const Figure* first = message.Detail("free_at_first");
  out.push_back(
      left == nullptr
          ? std::string("Limit: --mem-fraction-static leaves nothing for the KV cache beside the weights.")
          : absl::StrCat("Limit: the weights leave ", left->InWords(),
                         " of the device, and what --mem-fraction-static sets aside of it for other use leaves "
                         "nothing for the KV cache."));
  if (weights != nullptr) {
    out.push_back(absl::StrCat(first == nullptr ? "" : absl::StrCat("Of ", first->InWords(), " free at first "),
                               first == nullptr ? "The weights took " : "the weights took ", weights->InWords(), "."));
  }
}

}  // namespace

void WriteEngine(const OomMessage& message, std::vector<std::string>& out) {
  if (message.family == "sglang") return WriteSglang(message, out);
  out.push_back(ShortOfVllm(message));
  if (std::string sum = SumOfVllm(message); !sum.empty()) out.push_back(std::move(sum));
}

std::vector<OomTry> EngineTries(const OomMessage& message) {
  if (message.family == "vllm") return TriesForVllm(message);
  return message.family == "sglang" && message.FindNote("own_check") != nullptr ? TriesForSglang(message)
                                                                                : std::vector<OomTry>{};
}

}  // namespace ashlar::analyses::oom
