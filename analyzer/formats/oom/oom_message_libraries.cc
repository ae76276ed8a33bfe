// What says that memory ran out around PyTorch's own message: the warnings of its allocator (2.13 and later), the
// libraries it calls (cuBLAS, cuDNN, NCCL and their like), and vLLM's checks before it serves.
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analyzer/formats/oom/oom_parser.h"

namespace ashlar::formats::oom {
namespace {

// "memory allocation failed with OOM on device 0 while trying to allocate 134217728 bytes (free: 51380224, total:
// 4294967296)." and "memory mapping failed with OOM on device 0 while trying to map 20971520 bytes (free: ...)"
std::optional<FoundMessage> ParseAllocatorWarning(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("pt-warning", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  cursor.SkipPast("failedwithOOMondevice", 20);
  const std::optional<std::int64_t> device = cursor.TakeInteger();
  if (!device || *device > 1'000'000) return std::nullopt;
  message.device = static_cast<int>(*device);
  const bool is_mapping = absl::StartsWith(text.text().substr(at), "memorymapping");
  if (!TakeFigureAfter(cursor, is_mapping ? "whiletryingtomap" : "whiletryingtoallocate", 0, message, message.tried)) {
    return std::nullopt;
  }
  const bool is_whole = TakeFigureAfter(cursor, "(free:", 0, message, message.free, true) &&
                        TakeFigureAfter(cursor, ",total:", 0, message, message.total, true);
  message.truncated = !is_whole;
  if (is_mapping)
    message.AddNote("maps_pages", "the figure tried is one page of an expandable segment, not the request");
  finding.end = cursor.at();
  return finding;
}

// "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
std::optional<FoundMessage> ParseStatus(const SqueezedText& text, std::size_t at, absl::string_view words,
                                        absl::string_view family) {
  if (IsQuotedAt(text, at)) return std::nullopt;  // somebody's code or prose
  FoundMessage finding = Begin(family, at);
  Cursor cursor(text, at + words.size());
  Cursor call = cursor;
  if (call.Take("whencalling`")) {
    const std::size_t begin = call.at();
    if (call.SkipPast("`", 300)) {
      finding.message.AddNote("library_call", absl::StrCat("the call that failed: ", text.Raw(begin, call.at() - 1)));
      cursor = call;
    }
  }
  finding.end = cursor.at();
  return finding;
}

constexpr absl::string_view kCublas = "CUBLAS_STATUS_ALLOC_FAILED";
constexpr absl::string_view kHipblas = "HIPBLAS_STATUS_ALLOC_FAILED";
constexpr absl::string_view kCusolver = "CUSOLVER_STATUS_ALLOC_FAILED";
constexpr absl::string_view kCusparse = "CUSPARSE_STATUS_ALLOC_FAILED";
constexpr absl::string_view kCufft = "CUFFT_ALLOC_FAILED";
constexpr absl::string_view kCudnn = "CUDNN_STATUS_ALLOC_FAILED";
constexpr absl::string_view kCudnnDevice = "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";

template <const absl::string_view& kWords>
std::optional<FoundMessage> ParseMathLibrary(const SqueezedText& text, std::size_t at) {
  return ParseStatus(text, at, kWords, "cuda-library");
}

template <const absl::string_view& kWords>
std::optional<FoundMessage> ParseCudnn(const SqueezedText& text, std::size_t at) {
  return ParseStatus(text, at, kWords, "cudnn");
}

// Of a line of NCCL's log, "node7:30184:30391 [2] enqueue.cc:1085 NCCL WARN ": the number of the device.
std::optional<int> NcclDeviceBefore(const SqueezedText& text, std::size_t at) {
  constexpr std::size_t kMostLineBytes = 160;
  const std::size_t from = at > kMostLineBytes ? at - kMostLineBytes : 0;
  const absl::string_view line = text.text().substr(from, at - from);
  const std::size_t warning = line.rfind("NCCLWARN");
  const std::size_t close = warning == absl::string_view::npos ? warning : line.substr(0, warning).rfind(']');
  const std::size_t open = close == absl::string_view::npos ? close : line.substr(0, close).rfind('[');
  if (open == absl::string_view::npos || warning + 48 < line.size()) return std::nullopt;
  Cursor cursor(text, from + open + 1);
  const std::optional<std::int64_t> device = cursor.TakeInteger();
  if (!device || *device > 1'000'000 || cursor.at() != from + close) return std::nullopt;
  return static_cast<int>(*device);
}

// "Cuda failure 2 'out of memory'", and of older versions without the number
template <int kLength>
std::optional<FoundMessage> ParseNcclFailure(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("nccl", at);
  Cursor cursor(text, at + kLength);
  if (!cursor.Take("'outofmemory'")) return std::nullopt;
  finding.message.device = NcclDeviceBefore(text, at);
  finding.end = cursor.at();
  return finding;
}

// "NCCL WARN Failed to CUDA calloc 536870912 bytes", "Failed to CUDA calloc async 4 bytes"
std::optional<FoundMessage> ParseNcclCalloc(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("nccl", at);
  Cursor cursor(text, at);
  cursor.Take("FailedtoCUDA");
  if (!cursor.Take("calloc") && !cursor.Take("malloc")) return std::nullopt;
  cursor.Take("async");
  const std::optional<Figure> figure = cursor.TakeFigure();
  if (!figure) return std::nullopt;
  StoreFigure(finding.message, finding.message.tried, *figure, "failed to allocate");
  finding.message.device = NcclDeviceBefore(text, at);
  finding.end = cursor.at();
  return finding;
}

// "No available memory for the cache blocks.", and before it "Available KV cache memory: -0.30 GiB"
std::optional<FoundMessage> ParseNoCacheBlocks(const SqueezedText& text, std::size_t at) {
  if (IsQuotedAt(text, at)) return std::nullopt;
  FoundMessage finding = Begin("vllm", at);
  finding.message.AddNote("no_cache_blocks",
                          "weights, activations and what else vLLM measured fill gpu_memory_utilization: nothing is "
                          "left for the KV cache");
  finding.end = at + absl::string_view("Noavailablememoryforthecacheblocks").size();
  return finding;
}

// "(4.00 GiB KV cache is needed, which is larger than the available KV cache memory (1.20 GiB)"
std::optional<FoundMessage> ParseCacheNeeded(const SqueezedText& text, std::size_t at) {
  const std::size_t open = text.text().substr(0, at).rfind('(');
  if (open == absl::string_view::npos || at - open > 24) return std::nullopt;
  FoundMessage finding = Begin("vllm", open);
  OomMessage& message = finding.message;
  Cursor cursor(text, open);
  if (!TakeFigureAfter(cursor, "(", 0, message, message.tried)) return std::nullopt;
  std::optional<Figure> available;
  message.truncated = !TakeFigureAfter(cursor, "availableKVcachememory(", 60, message, available);
  if (available) message.details.push_back({"kv_cache", *available});
  message.AddNote("cache_of_one_request", "what was tried is the KV cache of one request of max_model_len");
  finding.end = cursor.at();
  return finding;
}

// "Free memory on device (10.5/23.6 GiB) on startup is less than desired GPU memory utilization (0.9, 21.2 GiB)"
std::optional<FoundMessage> ParseStartup(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("vllm", at);
  OomMessage& message = finding.message;
  Cursor cursor(text, at);
  cursor.SkipPast("(", 40);
  const std::size_t slash = cursor.Rest().substr(0, 16).find('/');
  if (slash == absl::string_view::npos) return std::nullopt;
  const std::string both = text.Raw(cursor.at(), cursor.at() + slash) + "GiB";
  const SqueezedText free_alone(both, 0);
  const std::optional<Figure> free = Cursor(free_alone, 0).TakeFigure();
  if (!free) return std::nullopt;
  StoreFigure(message, message.free, *free, "free");
  if (!TakeFigureAfter(cursor, "/", 16, message, message.total)) return std::nullopt;
  message.truncated = !TakeFigureAfter(cursor, ",", 70, message, message.tried);
  message.AddNote("startup_share",
                  "what was tried is the share of the device that gpu_memory_utilization claims at start");
  finding.end = cursor.at();
  return finding;
}

}  // namespace

const std::vector<Anchor>& LibraryAnchors() {
  static const auto& anchors =
      *new std::vector<Anchor>{{"memoryallocationfailedwithOOMondevice", &ParseAllocatorWarning},
                               {"memorymappingfailedwithOOMondevice", &ParseAllocatorWarning},
                               {kCublas, &ParseMathLibrary<kCublas>},
                               {kHipblas, &ParseMathLibrary<kHipblas>},
                               {kCusolver, &ParseMathLibrary<kCusolver>},
                               {kCusparse, &ParseMathLibrary<kCusparse>},
                               {kCufft, &ParseMathLibrary<kCufft>},
                               {kCudnn, &ParseCudnn<kCudnn>},
                               {kCudnnDevice, &ParseCudnn<kCudnnDevice>},
                               {"Cudafailure2", &ParseNcclFailure<12>},
                               {"Cudafailure", &ParseNcclFailure<11>},
                               {"FailedtoCUDA", &ParseNcclCalloc},
                               {"Noavailablememoryforthecacheblocks", &ParseNoCacheBlocks},
                               {"KVcacheisneeded,", &ParseCacheNeeded},
                               {"Freememoryondevice", &ParseStartup}};
  return anchors;
}

}  // namespace ashlar::formats::oom
