#include "analyzer/analyses/message/oom_message_evidence.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/torch_sizes.h"
#include "allocator/base/units.h"
#include "allocator/core/oom_report.h"

namespace ashlar::analyses::oom {
namespace {

using formats::Figure;
using formats::OomMessage;

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

// The same of refusals whose figures tell a verdict.
void WriteSeries(const OomMessage& message, std::vector<std::string>& out) {
  const Figure* largest = message.Detail("largest_tried");
  if (message.told < 2 || largest == nullptr) return;
  const Figure* smallest = message.Detail("smallest_tried");
  out.push_back(
      absl::StrCat("It is the first of ", FormatCount(message.told), " refusals, of ", smallest->InWords(),
                   smallest->low_bytes == largest->low_bytes ? "" : absl::StrCat(" to ", largest->InWords()),
                   "; no error follows them in this text: the program went on each time, or ended without a word."));
}

// Refusals that the program survived. What halves each time while what is free does not grow waits for memory that an
// earlier attempt still holds.
void WriteRefusals(const OomMessage& message, std::vector<std::string>& out) {
  const Figure* smallest = message.Detail("smallest_tried");
  const Figure* most_free = message.Detail("most_free");
  const bool is_one_size = smallest->low_bytes == message.Detail("largest_tried")->low_bytes;
  out.push_back(absl::StrCat(
      "Unknown: ", FormatCount(message.told), " refusals of ", message.Detail("largest_tried")->InWords(),
      is_one_size ? "" : absl::StrCat(" down to ", smallest->InWords()),
      ", and no error follows them in this text: the program went on each time, or ended without a word."));
  const trace::Note* halved = message.FindNote("halved_requests");
  if (halved == nullptr || halved->count < 2 || most_free == nullptr) return;
  out.push_back(absl::StrCat(
      "What was asked for halves ", FormatCount(halved->count), " times, and never more than ", most_free->InWords(),
      " was free, at last less than the first time: a failed attempt is still held (an exception "
      "keeps the frames that it was raised in; leave the except block before trying again)."));
}

}  // namespace

bool WriteLibrary(const OomMessage& message, std::vector<std::string>& out) {
  if (message.told > 1 && message.Detail("largest_tried") != nullptr) return WriteRefusals(message, out), true;
  if (message.family == "pt-warning") {
    out.push_back(absl::StrCat("Unknown: the device refused ", message.tried->InWords(),
                               message.free ? absl::StrCat(", with ", message.free->InWords(), " free") : "", "."));
    out.emplace_back(kWarningAlone);
    return true;
  }
  std::string sentence = LibrarySentence(message);
  if (sentence.empty() || message.FindNote("hidden_failure") != nullptr) return false;
  out.emplace_back("Unknown: a library found no memory on the device; how much was free is not in this message.");
  out.push_back(std::move(sentence));
  out.emplace_back(kRoomForLibrary);
  return true;
}

namespace {

// The verdict's own words begin its sentence.
std::string OutsideWords() {
  std::string out = VerdictWords(OomVerdict::kOutside);
  out[0] = absl::ascii_toupper(static_cast<unsigned char>(out[0]));
  return out;
}

constexpr std::int64_t Signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

constexpr std::uint64_t kTypicalOwnBytes = kGiB;  // outside the allocator: a context with its libraries

constexpr std::int64_t kOldGranuleBytes = Signed(128 * kKiB);  // PyTorch before 1.2

std::string Print(std::int64_t bytes) { return FormatSignedBytes(bytes); }
std::string PrintLess(std::int64_t bytes) { return FormatSignedBytes(-bytes); }

ByteSpan Closed(std::int64_t low, std::int64_t high) { return {low, low + (high - low) / 2, high}; }

// The multiples of `step` that the printed figure can stand for; nullopt when there is none.
std::optional<ByteSpan> Multiples(const formats::Figure& tried, std::int64_t step) {
  const std::int64_t low = (static_cast<std::int64_t>(tried.low_bytes) + step - 1) / step * step;
  const std::int64_t high = static_cast<std::int64_t>(tried.high_bytes) / step * step;
  if (low > high || high == 0) return std::nullopt;
  return Closed(std::max(low, step), high);
}

// Segments: 2 MiB for requests up to 1 MiB, 20 MiB below 10 MiB, else the request rounded up to 2 MiB.
std::optional<ByteSpan> SegmentRequest(const formats::Figure& tried) {
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
std::optional<ByteSpan> CachedRequest(const formats::Figure& tried) {
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

std::optional<ByteSpan> RoundedUpRequest(const formats::Figure& tried, std::int64_t step) {
  const auto high = static_cast<std::int64_t>(tried.high_bytes);
  if (high <= 0) return std::nullopt;
  return Closed(std::max<std::int64_t>(static_cast<std::int64_t>(tried.low_bytes) - step + 1, 1), high);
}

bool AdvisesMaxSplit(const OomMessage& message) { return message.advised == "max_split_size_mb"; }

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
  if (message.advised == "expandable_segments") {
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
                      FormatBytes(*parts.total_bytes - *parts.outside_bytes), " of the device's ",
                      FormatBytes(*parts.total_bytes), ": the CUDA context and others hold the rest.");
}

// XLA plans a program's memory before it runs.
void WriteCompile(const OomMessage& message, std::vector<std::string>& out) {
  const Figure* needs = message.Detail("needs");
  const Figure* missing = message.Detail("short");
  if (needs == nullptr || missing == nullptr || !message.total) return;
  Add(out, absl::StrCat("Capacity: the program was refused when it was compiled; it needs ", needs->InWords(), " of ",
                        message.total->InWords(), ", ", missing->InWords(), " too much."));
  const Figure* largest = message.Detail("largest");
  const trace::Note* line = message.FindNote("largest_line");
  const trace::Note* file = message.FindNote("largest_file");
  if (largest == nullptr || line == nullptr || file == nullptr) return;
  const absl::string_view path = file->message;
  Add(out, absl::StrCat("The largest of its arrays takes ", largest->InWords(), ", made at ",
                        path.substr(path.find_last_of("/\\ ") + 1), ":", line->count, "."));
}

// A message without figures beside the device's table.
void WriteTable(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  const Figure* used = message.Detail("device_used");
  std::vector<std::string> holders;
  for (const formats::ProcessUse& process : message.processes) {
    if (!process.device || !process.pid || !process.used) continue;
    holders.push_back(absl::StrCat("process ", *process.pid, " with ", FormatBytes(process.used->MiddleBytes())));
  }
  const bool is_others = verdict.kind == OomVerdict::kOutside;
  const std::string in_use =
      absl::StrCat(FormatBytes(used->MiddleBytes()), " of ", FormatBytes(message.total->MiddleBytes()),
                   " were in use in the table beside "
                   "the message");
  if (holders.size() > 5) holders.resize(5);
  if (!is_others) return Add(out, absl::StrCat("Capacity: ", in_use, "."));
  Add(out, absl::StrCat(OutsideWords(), ": ", in_use, ", which names ", absl::StrJoin(holders, ", "),
                        "; if that was this program itself, it is capacity."));
}

// cudaMallocAsync: the pool's figure, and what it does not explain.
void WriteAsync(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  const std::uint64_t total = *verdict.accounting.total_bytes, allocated = *verdict.accounting.allocated_bytes;
  const std::uint64_t sum = allocated + *verdict.tried_bytes;
  const std::string both = absl::StrCat(FormatBytes(allocated), " allocated and ", message.tried->InWords(), " more");
  if (sum > total) {
    Add(out, absl::StrCat("Capacity: ", both, " are above the ", FormatBytes(total), " that the device has."));
    if (allocated > total) {
      Add(out,
          "More is allocated than the device has: the driver spilled into host memory (Windows, WSL), which is slow.");
    }
    return;
  }
  const std::uint64_t rest = total - allocated - std::min(verdict.accounting.free_bytes.value_or(0), total - allocated);
  Add(out, absl::StrCat(verdict.kind == OomVerdict::kNearlyFull ? "Nearly full" : OutsideWords(), ": ", both,
                        " fit into ", FormatBytes(total), " with ", FormatBytes(total - sum), " to spare, but ",
                        FormatBytes(rest), " are not in use by this program's tensors."));
  Add(out,
      "They are the CUDA context, other processes (a desktop, a browser), or holes of the driver's pool: this message "
      "does not tell them apart.");
}

void WriteCapacity(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  const std::optional<std::uint64_t>& total = verdict.accounting.total_bytes;
  const std::optional<std::uint64_t>& allocated = verdict.accounting.allocated_bytes;
  if (message.FindNote("at_compile_time") != nullptr) return WriteCompile(message, out);
  if (message.FindNote("device_table") != nullptr) return WriteTable(message, verdict);
  if (message.family == "pt-async") return WriteAsync(message, verdict);
  if (!HoldsHoles(message) && message.tried && message.free && message.tried->low_bytes > message.free->high_bytes) {
    Add(out, absl::StrCat("Capacity: the device misses it by ", Print(verdict.missing->value_bytes), ": ",
                          message.tried->InWords(), " asked for, ", message.free->InWords(), " free."));
    if (total && verdict.accounting.free_bytes) {
      Add(out, absl::StrCat(FormatBytes(*total - std::min(*total, *verdict.accounting.free_bytes)), " of ",
                            FormatBytes(*total), " are in use; by this program or by others is not in this message."));
    }
    return;
  }
  if (!verdict.headroom && total && allocated && *verdict.tried_bytes <= *total) {
    Add(out, absl::StrCat("Capacity: ", FormatBytes(*allocated), " allocated and ", message.tried->InWords(),
                          " more are above the ", FormatBytes(*total),
                          " that the device has; no allocator setting can help."));
    return;
  }
  if (total && verdict.tried_interval->low_bytes > static_cast<std::int64_t>(*total)) {
    Add(out, absl::StrCat("Capacity: the one request of ", message.tried->InWords(), " is more than the ",
                          FormatBytes(*total), " that the device has; no allocator setting can help."));
    return Add(out, WrongLever(message, verdict));
  }
  if (!verdict.headroom) {
    Add(out, absl::StrCat("Capacity: ", message.tried->InWords(),
                          " is more than the device can give; no allocator setting can help."));
    return;
  }
  Add(out, absl::StrCat("Capacity: even ", core::kWithoutHoles, " it is short by ",
                        PrintLess(verdict.headroom->value_bytes), ", so no allocator setting can help."));
  Add(out, CeilingSentence(verdict));
  Add(out, WrongLever(message, verdict));
}

std::string GapSentence(const OomMessage& message, const OomMessageVerdict& verdict) {
  const auto stranded = static_cast<std::int64_t>(verdict.accounting.stranded_bytes.value_or(0));
  std::string text =
      absl::StrCat(Print(stranded),
                   " reserved but not allocated are holes beside live blocks: PyTorch had already "
                   "given back every segment that was free as a whole, and can give back none of these.");
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
                          message.reserved->InWords(), " in use; ", core::kWithoutHoles, " the request fits with ",
                          Print(verdict.limit_headroom->value_bytes), " to spare."));
    return;
  }
  const bool under_limit = verdict.limit_headroom && verdict.missing->value_bytes <= 0;
  const ByteSpan& spare = under_limit ? *verdict.limit_headroom : *verdict.headroom;
  const bool is_full = verdict.kind == OomVerdict::kNearlyFull;
  const bool is_to_the_last = verdict.HasNote("free_to_the_last");
  Add(out,
      absl::StrCat(is_full ? "Nearly full" : "Fragmentation", ": ", core::kWithoutHoles,
                   is_full ? " the request would fit with " : " the request fits with ", Print(spare.value_bytes),
                   " to spare", is_full ? ", under 2 % of the memory: no allocator packs as well as that; " : "; ",
                   under_limit ? absl::StrCat("the holes fill the ", message.limit->InWords(), " allowed.")
                   : is_to_the_last
                       ? absl::StrCat("of the device ", message.free->InWords(), " were left, which were not given.")
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

void WriteOtherProcess(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  if (message.FindNote("device_table") != nullptr) return WriteTable(message, verdict);
  if (message.family == "pt-async") return WriteAsync(message, verdict);
  const bool is_free_enough = verdict.HasNote("free_exceeds_tried");
  const std::string then =
      is_free_enough
          ? absl::StrCat(" The ", message.free->InWords(), " that the message calls free are more than the ",
                         message.tried->InWords(), " asked for: they may have been given back just after the failure.")
          : "";
  const char* end = is_free_enough ? "." : "; without them the request fits.";
  if (verdict.others) {
    Add(out, absl::StrCat(OutsideWords(), ": the message names others that hold ", Print(verdict.others->value_bytes),
                          " of this device", end, then));
  } else {
    Add(out, absl::StrCat(OutsideWords(), ": ", Print(verdict.outside->value_bytes),
                          " of the device are held outside this allocator, far more than a context (0.5 to 1.8 GiB)",
                          end, then));
    Add(out, verdict.HasNote("unified_memory")
                 ? "It is memory of the host: of its programs, and its page cache. /proc/meminfo tells them apart."
                 : "Who holds it is not in this message: look at the device's process list (nvidia-smi, "
                   "rocm-smi, npu-smi).");
  }
  if (!verdict.headroom || is_free_enough) return;
  const std::int64_t headroom = verdict.headroom->value_bytes;
  Add(out, headroom < 0
               ? absl::StrCat("Even ", core::kWithoutHoles, " it would still be short by ", PrintLess(headroom), ".")
               : absl::StrCat("But ", core::kWithoutHoles, " it would fit with ", Print(headroom), " to spare."));
}

void WriteLimit(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  if (message.family == "vllm" || message.family == "sglang") return WriteEngine(message, out);
  if (message.FindNote("buffer_limit") != nullptr) {
    const char* of = message.family == "pt-mps" ? "one Metal buffer" : "one buffer of this device";
    Add(out, absl::StrCat("Limit: ", message.tried ? message.tried->InWords() : "the tensor", " is larger than ", of,
                          " may be", message.limit ? absl::StrCat(" (", message.limit->InWords(), ")") : "",
                          ", however much memory is free."));
    return;
  }
  if (message.limit && message.reserved && message.family == "rmm") {
    const std::uint64_t most = message.limit->MiddleBytes(), held = message.reserved->MiddleBytes();
    Add(out, absl::StrCat("Limit: the pool may grow by ", FormatBytes(most - std::min(most, held)), " to its ",
                          message.limit->InWords(), ", and ", message.tried->InWords(), " are asked for."));
    return;
  }
  if (message.family == "pt-rejected") {
    Add(out, "Limit: the process's memory fraction (set_per_process_memory_fraction) leaves no room for the request.");
    Add(out, "The device itself was not asked.");
    return;
  }
  if (verdict.limit_headroom && verdict.limit_headroom->value_bytes < 0) {
    Add(out, absl::StrCat("Limit: ", message.limit->InWords(), " is allowed, and the request passes it by ",
                          PrintLess(verdict.limit_headroom->value_bytes), "."));
    if (message.free) Add(out, absl::StrCat("The device itself had ", message.free->InWords(), " free."));
    return;
  }
  if (verdict.limit_headroom && !IsCachingAllocator(message)) {
    Add(out, absl::StrCat("Limit: ", message.limit->InWords(), " is allowed, ", message.reserved->InWords(),
                          " is held, and the request of ", message.tried->InWords(),
                          " passes what is left by less than the print can tell."));
    return;
  }
  if (message.limit && message.reserved && message.tried) {
    Add(out, absl::StrCat("Limit: ", message.limit->InWords(), " is allowed and ", message.reserved->InWords(),
                          " is reserved; ", message.tried->InWords(),
                          " more pass what is left, or by less than the print can tell."));
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
  if (message.FindNote("own_check") != nullptr) {
    Add(out, absl::StrCat("Limit: ", message.FindNote("own_check")->message, "."));
    return;
  }
  Add(out, "Limit: the pool's own maximum size stopped it, whatever the device has left.");
}

// Failures that call themselves something else.
bool WriteHidden(const OomMessage& message, std::vector<std::string>& out) {
  if (message.FindNote("not_out_of_memory") != nullptr) {
    const Figure* first = message.Detail("free_at_first");
    const Figure* then = message.Detail("free_then");
    Add(out, absl::StrCat("Unknown: not out of memory: ", message.FindNote("not_out_of_memory")->message,
                          first != nullptr && then != nullptr
                              ? absl::StrCat(" (", first->InWords(), " free at first, ", then->InWords(), " then).")
                              : "."));
    return true;
  }
  const trace::Note* hidden = message.FindNote("hidden_failure");
  if (hidden == nullptr) return false;
  if (message.family == "pt-nvml") {
    Add(out, "Unknown: out of memory: the allocator failed while it wrote its message, so that no figure is here.");
  } else if (message.family == "accelerate") {
    Add(out, "Unknown: out of memory at every batch size down to 1; the messages were swallowed.");
  } else {
    Add(out, absl::StrCat("Unknown: this may be out of memory",
                          message.family == "cuda-library" ? ", with no room for the library's handle" : "", "."));
  }
  Add(out, absl::StrCat(hidden->message, "."));
  out.back()[0] = absl::ascii_toupper(static_cast<unsigned char>(out.back()[0]));
  return true;
}

// Who stopped the program, where the host's memory ran out.
absl::string_view HostWords(const OomMessage& message) {
  if (message.family == "slurm") return "the job's memory limit, which Slurm holds it to";
  if (message.family == "cgroup") return "the container's memory limit";
  if (message.family == "commit-limit") return "the commit limit of Windows (memory and paging file together)";
  if (message.family == "shared-memory") return "the shared memory of the container (/dev/shm)";
  if (message.family == "ray") return "Ray ended a worker, as the node was short of memory";
  if (message.family == "kernel-cgroup") {
    return "the memory cgroup of the container or job was full, and the kernel ended a process";
  }
  if (message.family == "kernel") return "the whole host was full, and the kernel ended a process";
  return "the system refused it";
}

void WriteHost(const OomMessage& message, std::vector<std::string>& out) {
  Add(out, absl::StrCat("Host memory: ", HostWords(message), ". It is not the device that was full."));
  if (message.tried) Add(out, absl::StrCat(message.tried->InWords(), " of the host's memory could not be had."));
  const Figure* resident = message.Detail("anon_rss");
  const trace::Note* pid = message.FindNote("pid");
  if (resident != nullptr && pid != nullptr) {
    Add(out, absl::StrCat("Process ", pid->count, " held ", FormatBytes(resident->MiddleBytes()),
                          " of it when it was ended (anon-rss)."));
  }
}

// What the message says of this process.
void WriteOwn(OomMessageVerdict& verdict) {
  if (!verdict.own_bytes || verdict.own_outside_bytes.value_or(0) <= kTypicalOwnBytes) return;
  Add(verdict.evidence, absl::StrCat("This process holds ", FormatBytes(*verdict.own_bytes), ", ",
                                     FormatBytes(*verdict.own_outside_bytes),
                                     " of it outside PyTorch: the CUDA context, communicators, other libraries."));
}

// What stands there where the size asked for does not.
std::string UnknownRequest(const OomMessage& message, const OomMessageVerdict& verdict) {
  const OomAccounting& parts = verdict.accounting;
  std::vector<std::string> known;
  if (parts.free_bytes) known.push_back(absl::StrCat(FormatBytes(*parts.free_bytes), " free"));
  if (parts.reserved_bytes) known.push_back(absl::StrCat(FormatBytes(*parts.reserved_bytes), " reserved"));
  if (parts.allocated_bytes) known.push_back(absl::StrCat(FormatBytes(*parts.allocated_bytes), " allocated"));
  if (message.limit) known.push_back(absl::StrCat("a limit of ", message.limit->InWords()));
  const std::string of = parts.total_bytes ? absl::StrCat(" of ", FormatBytes(*parts.total_bytes)) : "";
  if (known.empty() && of.empty()) return "Unknown: this message has no figures; it tells only that memory ran out.";
  if (known.empty())
    return absl::StrCat("Unknown: how much was asked for is not told; the device has", of.substr(3), ".");
  return absl::StrCat("Unknown: how much was asked for is not told; ", absl::StrJoin(known, ", "), of, ".");
}

void WriteUnknown(const OomMessage& message, OomMessageVerdict& verdict) {
  std::vector<std::string>& out = verdict.evidence;
  if (WriteLibrary(message, out) || WriteHidden(message, out)) return;
  if (!message.tried && message.FindNote("impossible_figure") != nullptr) {
    Add(out, absl::StrCat("Unknown: ", message.FindNote("impossible_figure")->message, "."));
    Add(out,
        "A program that asks for as much has a wrong size in it (a damaged file or shape, an overflow): memory did not "
        "run out.");
  } else if (!message.tried) {
    Add(out, UnknownRequest(message, verdict));
  } else if (message.free && message.free->low_bytes >= message.tried->high_bytes) {
    Add(out,
        absl::StrCat("Unknown: ", message.tried->InWords(), " could not be had, though ", message.free->InWords(),
                     " was free when the message was written: what was free lay in pieces, or was taken and given back "
                     "at that moment."));
  } else if (!HoldsHoles(message)) {
    Add(out, absl::StrCat("Unknown: ", message.tried->InWords(), " could not be had",
                          message.free ? absl::StrCat(", and ", message.free->InWords(), " was free.")
                                       : "; what the device had free is not in this message."));
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

}  // namespace

bool IsCachingAllocator(const OomMessage& message) {
  const absl::string_view family = message.family;
  return family == "ashlar" || (absl::StartsWith(family, "pt-") && family != "pt-mps" && family != "pt-async");
}

// CUDA.jl prints its pool as PyTorch does: what is reserved and not used is in holes.
bool HoldsHoles(const OomMessage& message) { return IsCachingAllocator(message) || message.family == "cuda-jl"; }

std::optional<ByteSpan> RequestInterval(const OomMessage& message) {
  if (!message.tried) return std::nullopt;
  if (message.family == "pt-cached") return CachedRequest(*message.tried);
  if (message.FindNote("buffer_limit") != nullptr) return std::nullopt;
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
  if (message.FindNote("host_memory") != nullptr) return "tried is the request.";
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
      WriteOtherProcess(message, verdict);
      break;
    case OomVerdict::kLimit:
      WriteLimit(message, verdict);
      break;
    case OomVerdict::kHealthy:
      Add(verdict.evidence, "Nothing failed: the program went on with less memory, and this text is a warning.");
      break;
    case OomVerdict::kNearlyFull:
      message.family == "pt-async" ? WriteAsync(message, verdict) : WriteFragmentation(message, verdict);
      break;
    case OomVerdict::kHostMemory:
      WriteHost(message, verdict.evidence);
      break;
    case OomVerdict::kLeak:  // a message alone never tells it
    case OomVerdict::kUnknown:
      WriteUnknown(message, verdict);
      break;
  }
  if (verdict.kind != OomVerdict::kUnknown) WriteSeries(message, verdict.evidence);
  WriteOwn(verdict);
  WriteAdvice(message, verdict);
}

}  // namespace ashlar::analyses::oom
