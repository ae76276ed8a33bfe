#include "analyzer/analyses/message/oom_message_evidence.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/torch_sizes.h"
#include "allocator/base/units.h"

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

namespace {

constexpr std::int64_t Signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

constexpr std::int64_t kOldGranuleBytes = Signed(128 * kKiB);  // PyTorch before 1.2

std::string Print(std::int64_t bytes) { return FormatSignedBytes(bytes); }
std::string PrintLess(std::int64_t bytes) { return FormatSignedBytes(-bytes); }

ByteSpan Closed(std::int64_t low, std::int64_t high) { return {low, low + (high - low) / 2, high}; }

// The multiples of `step` that the printed figure can stand for; nullopt when there is none.
std::optional<ByteSpan> Multiples(const readers::Figure& tried, std::int64_t step) {
  const std::int64_t low = (static_cast<std::int64_t>(tried.low_bytes) + step - 1) / step * step;
  const std::int64_t high = static_cast<std::int64_t>(tried.high_bytes) / step * step;
  if (low > high || high == 0) return std::nullopt;
  return Closed(std::max(low, step), high);
}

// Segments: 2 MiB for requests up to 1 MiB, 20 MiB below 10 MiB, else the request rounded up to 2 MiB.
std::optional<ByteSpan> SegmentRequest(const readers::Figure& tried) {
  const std::optional<ByteSpan> segments = Multiples(tried, Signed(kRoundLargeBytes));
  if (!segments) return std::nullopt;
  if (segments->high_bytes == Signed(kSmallSegmentBytes)) return Closed(1, Signed(kSmallMaxBytes));
  const bool is_one_size = segments->low_bytes == segments->high_bytes;
  if (is_one_size && segments->high_bytes == Signed(kDefaultLargeSegmentBytes)) {
    return Closed(Signed(kSmallMaxBytes) + 1, Signed(kMinLargeBytes));
  }
  return Closed(segments->low_bytes - Signed(kRoundLargeBytes) + 1, segments->high_bytes);
}

// 0.4 to 1.3: the rules changed at 1.2, and the message does not say which; the interval covers both.
std::optional<ByteSpan> CachedRequest(const readers::Figure& tried) {
  const std::optional<ByteSpan> old_sizes = Multiples(tried, kOldGranuleBytes);
  if (!old_sizes) return std::nullopt;
  if (old_sizes->high_bytes <= static_cast<std::int64_t>(kMiB)) return Closed(1, static_cast<std::int64_t>(kMiB));
  ByteSpan request = Closed(old_sizes->low_bytes - kOldGranuleBytes + 1, old_sizes->high_bytes);
  if (const std::optional<ByteSpan> segment = SegmentRequest(tried)) {
    request =
        Closed(std::min(request.low_bytes, segment->low_bytes), std::max(request.high_bytes, segment->high_bytes));
  }
  return request;
}

std::optional<ByteSpan> RoundedUpRequest(const readers::Figure& tried, std::int64_t step) {
  const auto high = static_cast<std::int64_t>(tried.high_bytes);
  if (high <= 0) return std::nullopt;
  return Closed(std::max<std::int64_t>(static_cast<std::int64_t>(tried.low_bytes) - step + 1, 1), high);
}

bool AdvisesMaxSplit(const OomMessage& message) {
  return message.family == "pt-reserved-hint" || message.family == "pt-capacty-typo" || message.family == "pt-npu";
}

// "A is not >> B": the gap is under a quarter of what is reserved.
bool GapIsSmall(const OomMessageVerdict& verdict) {
  const std::optional<std::uint64_t>& reserved = verdict.accounting.reserved_bytes;
  return verdict.gap && reserved && static_cast<std::uint64_t>(verdict.gap->value_bytes) < *reserved / 4;
}

std::string WrongLever(const OomMessage& message, const OomMessageVerdict& verdict) {
  if (AdvisesMaxSplit(message) && GapIsSmall(verdict)) {
    return absl::StrCat("Reserved ", FormatBytes(*verdict.accounting.reserved_bytes), " against allocated ",
                        FormatBytes(*verdict.accounting.allocated_bytes),
                        " is not \">>\": max_split_size_mb, which the message advises, is the wrong lever.");
  }
  if (absl::StartsWith(message.family, "pt-capacity") || message.family == "pt-alloc-conf-renamed") {
    return "expandable_segments, which the message advises, can only close holes, and closing them all is not enough.";
  }
  return "";
}

void Add(std::vector<std::string>& sentences, std::string sentence) {
  if (!sentence.empty()) sentences.push_back(std::move(sentence));
}

// What is needed against total - outside.
std::string CeilingSentence(const OomMessageVerdict& verdict) {
  const OomAccounting& parts = verdict.accounting;
  if (!parts.outside_bytes || !parts.allocated_bytes || !parts.total_bytes || !verdict.tried_bytes) return "";
  return absl::StrCat("Allocated ", FormatBytes(*parts.allocated_bytes), " and the request make ",
                      FormatBytes(*parts.allocated_bytes + *verdict.tried_bytes), "; this allocator can hold at most ",
                      FormatBytes(*parts.total_bytes - *parts.outside_bytes), ".");
}

void WriteCapacity(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  const std::optional<std::uint64_t>& total = verdict.accounting.total_bytes;
  const std::optional<std::uint64_t>& allocated = verdict.accounting.allocated_bytes;
  if (!verdict.headroom && total && allocated && *verdict.tried_bytes <= *total) {
    Add(out, absl::StrCat("Capacity: ", FormatBytes(*allocated), " allocated and ", message.tried->InWords(),
                          " more are above the ", FormatBytes(*total),
                          " that the device has; no allocator setting can help."));
    return;
  }
  if (!verdict.headroom) {
    Add(out, absl::StrCat("Capacity: ", message.tried->InWords(), " is more than the device can give",
                          verdict.accounting.total_bytes
                              ? absl::StrCat(", which has ", FormatBytes(*verdict.accounting.total_bytes))
                              : "",
                          "; no allocator setting can help."));
    return;
  }
  Add(out, absl::StrCat("Capacity: even with no holes at all it is short by ", PrintLess(verdict.headroom->value_bytes),
                        ", so no allocator setting can help."));
  Add(out, CeilingSentence(verdict));
  Add(out, WrongLever(message, verdict));
}

std::string GapSentence(const OomMessage& message, const OomMessageVerdict& verdict) {
  const auto stranded = static_cast<std::int64_t>(verdict.accounting.stranded_bytes.value_or(0));
  std::string text = absl::StrCat(Print(stranded),
                                  " reserved but not allocated is stranded beside live blocks: the cache "
                                  "had already returned every whole free segment, so this is the irreducible part.");
  if (message.private_pool && verdict.accounting.private_pool_bytes) {
    absl::StrAppend(&text, " ", message.private_pool->InWords(),
                    " more is free inside private pools (CUDA graphs, MemPool), which other requests cannot use.");
  }
  return text;
}

// Where the request fits only with the private pools' free blocks.
std::string PrivatePoolSentence(const OomMessageVerdict& verdict) {
  const auto pools = static_cast<std::int64_t>(verdict.accounting.private_pool_bytes.value_or(0));
  const std::int64_t without = verdict.headroom->value_bytes - pools;
  if (pools == 0 || without >= 0) return "";
  return absl::StrCat("The private pools decide: without what they hold free the request is short by ",
                      PrintLess(without), ".");
}

void WriteFragmentation(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  if (message.family == "tf-bfc") {
    Add(out, absl::StrCat("Fragmentation: the pool may hold ", message.limit->InWords(), " and has ",
                          message.reserved->InWords(), " in use; with no holes the request fits with ",
                          Print(verdict.limit_headroom->value_bytes), " to spare."));
    return;
  }
  const bool under_limit = verdict.limit_headroom && verdict.missing->value_bytes <= 0;
  const ByteSpan& spare = under_limit ? *verdict.limit_headroom : *verdict.headroom;
  Add(out, absl::StrCat(
               "Fragmentation: with no holes at all the request fits with ", Print(spare.value_bytes), " to spare; ",
               under_limit ? absl::StrCat("the holes fill the ", message.limit->InWords(), " allowed.")
                           : absl::StrCat("free memory misses it by ", Print(verdict.missing->value_bytes), ".")));
  if (!under_limit) Add(out, CeilingSentence(verdict));
  Add(out, GapSentence(message, verdict));
  if (!under_limit) Add(out, PrivatePoolSentence(verdict));
  if (message.processes.empty() && verdict.outside && verdict.outside->value_bytes > verdict.gap->value_bytes) {
    Add(out, absl::StrCat(Print(verdict.outside->value_bytes),
                          " outside this allocator may include another process or "
                          "an earlier run (a context alone is 0.5 to 1.8 GiB): not in this message."));
  }
}

void WriteOtherProcess(OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  if (verdict.others) {
    Add(out, absl::StrCat("Other processes: the message names others that hold ", Print(verdict.others->value_bytes),
                          " of this device; without them the request fits."));
  } else {
    Add(out, absl::StrCat("Memory outside this allocator: ", Print(verdict.outside->value_bytes),
                          " of the device is held "
                          "elsewhere, far more than a context (0.5 to 1.8 GiB); without it the request fits."));
    Add(out, "Who holds it is not in this message: look at the device's process list (nvidia-smi, rocm-smi, npu-smi).");
  }
  if (!verdict.headroom) return;
  const std::int64_t headroom = verdict.headroom->value_bytes;
  Add(out, headroom < 0 ? absl::StrCat("With no holes at all it would still be short by ", PrintLess(headroom), ".")
                        : absl::StrCat("With no holes at all it would fit with ", Print(headroom), " to spare."));
}

void WriteLimit(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  if (message.family == "vllm") return WriteVllm(message, out);
  if (message.family == "pt-rejected") {
    Add(out, "Limit: the process's memory fraction (set_per_process_memory_fraction) leaves no room for the request.");
    Add(out, "Raise the fraction, or hold less; the device itself was not asked.");
    return;
  }
  if (verdict.limit_headroom && verdict.limit_headroom->value_bytes < 0) {
    Add(out, absl::StrCat("Limit: ", message.limit->InWords(), " is allowed, and the request passes it by ",
                          PrintLess(verdict.limit_headroom->value_bytes), "."));
    if (message.free)
      Add(out, absl::StrCat("The device itself had ", message.free->InWords(),
                            " free: raise the limit, or "
                            "hold less."));
    return;
  }
  if (verdict.limit_headroom && !IsCachingAllocator(message)) {
    Add(out, absl::StrCat("Limit: ", message.limit->InWords(), " is allowed, ", message.reserved->InWords(),
                          " is held, and the request of ", message.tried->InWords(),
                          " passes what is left by less than the print can tell."));
    return;
  }
  if (message.free && message.tried) {
    Add(out, absl::StrCat("Limit: the device reported ", message.free->InWords(), " free, enough for ",
                          message.tried->InWords(), ", so something else stopped it."));
    Add(out,
        "Which limit is not in this message: a container or virtual GPU quota, the system's commit limit, or memory "
        "that was freed just after the failure.");
    return;
  }
  Add(out, "Limit: the pool's own maximum size stopped it, whatever the device has left.");
}

void WriteUnknown(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  if (WriteLibrary(message, out)) return;
  if (!message.tried) {
    Add(out, "Unknown: this message has no figures; it tells only that memory ran out.");
  } else {
    Add(out, absl::StrCat("Unknown: ", message.tried->InWords(), " could not be had, and ",
                          message.free ? absl::StrCat(message.free->InWords(), " was free; ") : "",
                          verdict.gap ? absl::StrCat(Print(verdict.gap->value_bytes),
                                                     " were held in holes; what the device had free")
                                      : "how much the allocator held in holes",
                          " is not in this message."));
  }
  if (message.truncated) Add(out, "The message is cut: paste it whole, to the last line, for a verdict.");
}

constexpr absl::string_view kSnapshotStep =
    "To see which tensors hold the memory and which pin segments, record a snapshot: the first line at the start of "
    "the program, the second right after the failure. Then run ashlar explain snapshot.pickle.";
constexpr absl::string_view kStatisticsStep =
    "This message cannot tell which arrays hold the memory. Have the allocator tell it: run the line below right "
    "before "
    "the step that fails, and read it together with this message.";

constexpr absl::string_view kOldTorchStep =
    "To see which tensors hold the memory and which pin segments, run the program under PyTorch 2.1 or later (this "
    "version records no snapshots), the first line at its start, the second right after the failure. Then run ashlar "
    "explain snapshot.pickle.";

std::vector<std::string> TorchLines() {
  return {"torch.cuda.memory._record_memory_history(max_entries=100000)",
          "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"};
}

struct NextStep {
  absl::string_view family;  // of messages, by its beginning
  absl::string_view step;
  std::vector<std::string> lines;  // of Python
};

// As the projects' own documentation names them. The first that fits counts.
const std::vector<NextStep>& NextSteps() {
  static const auto& steps = *new std::vector<NextStep>{
      {"pt-npu",
       kSnapshotStep,
       {"torch.npu.memory._record_memory_history(max_entries=100000)",
        "torch.npu.memory._dump_snapshot(\"snapshot.pickle\")"}},
      {"pt-cached", kOldTorchStep, TorchLines()},
      {"pt-pre-1.0", kOldTorchStep, TorchLines()},
      {"pt-xpu", kStatisticsStep, {"print(torch.xpu.memory_stats())"}},
      {"pt-mps", kStatisticsStep, {"print(torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory())"}},
      {"pt-", kSnapshotStep, TorchLines()},
      {"jax-xla", kStatisticsStep, {"jax.profiler.save_device_memory_profile(\"memory.prof\")"}},
      {"tf-bfc", kStatisticsStep, {"print(tf.config.experimental.get_memory_info(\"GPU:0\"))"}},
      {"cupy",
       kStatisticsStep,
       {"pool = cupy.get_default_memory_pool()", "print(pool.used_bytes(), pool.total_bytes())"}},
      {"cuda-library", kSnapshotStep, TorchLines()},
      {"cudnn", kSnapshotStep, TorchLines()},
      {"nccl", kSnapshotStep, TorchLines()},
      {"vllm",
       "vLLM logs what it measured before this line: the memory of the weights, the peak of the profiling run, and "
       "what "
       "it left for the KV cache. Run it with the line below to have the figures in the log.",
       {"VLLM_LOGGING_LEVEL=DEBUG"}},
      {"rmm",
       "This message cannot tell which arrays hold the memory. Have every allocation logged: run the lines below at "
       "the "
       "start of the program, and read the log together with this message.",
       {"log = rmm.mr.LoggingResourceAdaptor(rmm.mr.get_current_device_resource(), log_file_name=\"rmm.csv\")",
        "rmm.mr.set_current_device_resource(log)"}},
      {"ashlar",
       "This message cannot tell which lines hold the memory. Run again with the line below: each failure writes what "
       "the "
       "allocator holds into a file for `ashlar explain`.",
       {"export ASHLAR_OOM_DUMP=/tmp"}},
      {"",
       "This message cannot tell which tensors hold the memory. Log the allocator's own statistics before the step "
       "that "
       "fails, and read them together with this message.",
       {}}};
  return steps;
}

void WriteNextStep(const OomMessage& message, OomMessageVerdict& verdict) {
  for (const NextStep& next : NextSteps()) {
    if (!absl::StartsWith(message.family, next.family)) continue;
    verdict.next_step = std::string(next.step);
    verdict.next_lines = next.lines;
    return;
  }
}

}  // namespace

bool IsCachingAllocator(const OomMessage& message) {
  return message.family == "ashlar" || (absl::StartsWith(message.family, "pt-") && message.family != "pt-mps");
}

std::optional<ByteSpan> RequestInterval(const OomMessage& message) {
  if (!message.tried) return std::nullopt;
  if (message.family == "pt-cached") return CachedRequest(*message.tried);
  if (message.family == "pt-rejected") return RoundedUpRequest(*message.tried, 512);
  for (const trace::Note& note : message.notes) {
    if (note.name == "maps_pages") return std::nullopt;
  }
  if (IsCachingAllocator(message)) return SegmentRequest(*message.tried);
  if (message.family == "cupy") return RoundedUpRequest(*message.tried, 512);
  if (message.family == "jax-xla" || message.family == "nccl" || message.family == "rmm" || message.family == "ggml") {
    return RoundedUpRequest(*message.tried, 1);
  }
  return std::nullopt;
}

std::string TriedMeaning(const OomMessage& message) {
  if (!message.tried) return "";
  if (message.family == "pt-cached") {
    return "tried is the size of the new segment: the request rounded up to 128 KiB or 2 MiB, by version.";
  }
  if (IsCachingAllocator(message)) {
    return "tried is the size of the new segment: 2 MiB for a request up to 1 MiB, 20 MiB for one up to 10 MiB, else "
           "the "
           "request rounded up to 2 MiB.";
  }
  if (message.family == "pt-mps")
    return "tried is the size of the new buffer: the request rounded up to the device's alignment.";
  if (message.family == "tf-bfc") return "tried is what the allocator asked for; it may be a whole region of its pool.";
  if (message.family == "cupy") return "tried is the request rounded up to 512 bytes.";
  if (message.family == "paddle") return "tried is the size of the chunk asked from the device, not the tensor's.";
  return "tried is the size asked from the device.";
}

void WriteEvidence(const OomMessage& message, OomMessageVerdict& verdict) {
  switch (verdict.kind) {
    case OomVerdict::kCapacity:
      WriteCapacity(message, verdict);
      break;
    case OomVerdict::kFragmentation:
      WriteFragmentation(message, verdict);
      break;
    case OomVerdict::kOutside:
      WriteOtherProcess(verdict);
      break;
    case OomVerdict::kLimit:
      WriteLimit(message, verdict);
      break;
    case OomVerdict::kHealthy:
      Add(verdict.evidence, "Nothing failed: the program went on with less memory, and this text is a warning.");
      break;
    case OomVerdict::kNearlyFull:  // a message alone never tells these two
    case OomVerdict::kLeak:
    case OomVerdict::kUnknown:
      WriteUnknown(message, verdict);
      break;
  }
  WriteNextStep(message, verdict);
}

}  // namespace ashlar::analyses::oom
