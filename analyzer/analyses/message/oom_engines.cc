// Serving engines refuse to start by sums of their own: the share of the device that they may take, what the weights
// and a trial run took of it, and what is left for the cache of keys and values.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

// The least share, in hundredths, that leaves something for the cache.
std::string ShareOfVllm(const OomMessage& message) {
  const std::uint64_t taken = BytesOf(message.Detail("weights")) + BytesOf(message.Detail("activations")) +
                              BytesOf(message.Detail("non_torch"));
  if (!message.total || message.Detail("weights") == nullptr || message.Detail("activations") == nullptr) return "";
  const auto total = static_cast<double>(message.total->MiddleBytes());
  if (total <= 0) return "";
  const double share = static_cast<double>(taken) / total;
  const double least = std::floor(share * 100 + 1) / 100;
  if (least >= 1) {
    return "No gpu_memory_utilization is large enough on this device: lower the weights' precision, or spread the "
           "model "
           "with tensor_parallel_size.";
  }
  return absl::StrFormat(
      "Set gpu_memory_utilization to %.2f or more: %.2f leaves %s for the cache, %.2f would leave none.", least, least,
      FormatBytes(static_cast<std::uint64_t>(least * total) - taken), least - 0.01);
}

std::string ShortOfVllm(const OomMessage& message) {
  if (message.FindNote("startup_share") != nullptr && message.tried && message.free) {
    return absl::StrCat("Limit: vLLM asks for ", message.tried->InWords(), " of the device where ",
                        message.free->InWords(), " is free.");
  }
  if (const Figure* cache = message.Detail("kv_cache"); cache != nullptr && message.tried) {
    return absl::StrCat("Limit: vLLM asks for ", message.tried->InWords(), " of KV cache where ", cache->InWords(),
                        " is left.");
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

std::string MendOfVllm(const OomMessage& message) {
  if (message.FindNote("startup_share") != nullptr) {
    return "Something else holds the rest of the device: end it, or lower gpu_memory_utilization.";
  }
  if (message.FindNote("dummy_requests") != nullptr) {
    return "Lower max_num_seqs, or gpu_memory_utilization, which leaves more of the device beside the KV cache.";
  }
  if (const trace::Note* fitting = message.FindNote("fitting_model_length"); fitting != nullptr) {
    return absl::StrCat("Set max_model_len to ", FormatCount(fitting->count),
                        " or less, as vLLM reckons; or raise gpu_memory_utilization where the device is not shared.");
  }
  if (std::string share = ShareOfVllm(message); !share.empty()) return share;
  return "Lower max_model_len, max_num_seqs or the weights' precision, spread the model over more devices, or raise "
         "gpu_memory_utilization where the device is not shared.";
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
  // What is static is weights and cache; of what is free at first, the fraction has to pass the weights' part.
  if (weights == nullptr || first == nullptr || first->MiddleBytes() == 0) {
    out.emplace_back("Raise --mem-fraction-static, or load fewer bytes of weights (quantization, --tp).");
    return;
  }
  const double least = static_cast<double>(weights->MiddleBytes()) / static_cast<double>(first->MiddleBytes());
  out.push_back(
      absl::StrFormat("Set --mem-fraction-static above %.2f, which the weights alone take of what was free; each 0.01 "
                      "more is %s of cache.",
                      std::ceil(least * 100) / 100, FormatBytes(first->MiddleBytes() / 100)));
}

}  // namespace

void WriteEngine(const OomMessage& message, std::vector<std::string>& out) {
  if (message.family == "sglang") return WriteSglang(message, out);
  out.push_back(ShortOfVllm(message));
  if (std::string sum = SumOfVllm(message); !sum.empty()) out.push_back(std::move(sum));
  out.push_back(MendOfVllm(message));
}

}  // namespace ashlar::analyses::oom
