#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/analyses/message/oom_message_evidence.h"

namespace ashlar::analyses::oom {
namespace {

using readers::OomMessage;

// A library that asks the device itself, outside PyTorch's allocator; empty for others.
std::string LibrarySentence(const OomMessage& message) {
  if (message.family == "nccl") {
    return "NCCL takes its buffers from the device itself: what PyTorch's cache keeps is not there for it.";
  }
  if (message.family == "cuda-library" || message.family == "cudnn") {
    return "The library takes its handle and workspace from the device itself: what PyTorch's cache keeps is not there "
           "for it.";
  }
  return "";
}

constexpr absl::string_view kRoomForLibrary =
    "Leave it room: create the handle or the communicator before the cache has grown, call torch.cuda.empty_cache() "
    "right before this line, or lower the memory fraction of PyTorch.";

// A warning alone: the allocator went on to return its cache.
constexpr absl::string_view kWarningAlone =
    "This is a warning: the allocator then returned its cached segments and asked again. Where that failed too, an "
    "error follows it, which is not in this text.";

}  // namespace

// vLLM's own checks, each with the flags that move it.
void WriteVllm(const OomMessage& message, std::vector<std::string>& out) {
  const bool is_startup = message.total.has_value();
  if (message.tried && message.free) {
    out.push_back(absl::StrCat("Limit: vLLM asks for ", message.tried->InWords(),
                               is_startup ? " of the device" : " of KV cache", " where ", message.free->InWords(),
                               is_startup ? " is free." : " is left."));
  } else {
    out.push_back(
        "Limit: gpu_memory_utilization leaves nothing for the KV cache beside the weights and the activations.");
  }
  out.push_back(is_startup ? "Something else holds the rest of the device: end it, or lower gpu_memory_utilization."
                           : "Lower max_model_len, max_num_seqs or the weights' precision, spread the model over more "
                             "devices, or raise gpu_memory_utilization where the device is not shared.");
}

bool WriteLibrary(const OomMessage& message, std::vector<std::string>& out) {
  if (message.family == "pt-warning") {
    out.push_back(absl::StrCat("Unknown: the device refused ", message.tried->InWords(),
                               message.free ? absl::StrCat(", with ", message.free->InWords(), " free") : "", "."));
    out.emplace_back(kWarningAlone);
    return true;
  }
  std::string sentence = LibrarySentence(message);
  if (sentence.empty()) return false;
  out.emplace_back("Unknown: a library found no memory on the device; how much was free is not in this message.");
  out.push_back(std::move(sentence));
  out.emplace_back(kRoomForLibrary);
  return true;
}

}  // namespace ashlar::analyses::oom
