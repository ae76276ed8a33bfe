#include "analyzer/analyses/message/oom_message_verdict.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "allocator/base/units.h"
#include "allocator/core/oom_report.h"
#include "analyzer/analyses/message/oom_message_evidence.h"

namespace ashlar::analyses {
namespace {

using formats::Figure;
using formats::OomMessage;
using formats::ProcessUse;

// A CUDA context with its libraries takes 0.5 to 1.8 GiB; what is outside beyond that belongs to somebody else.
constexpr std::int64_t kSmallContextBytes = static_cast<std::int64_t>(kGiB) / 2;
constexpr std::int64_t kPoolUnitBytes = 256;  // of TensorFlow's and XLA's pool
// Of a device, in a table beside a message without figures: with no more than this free it was full.
constexpr double kFullDeviceShare = 0.05;
// Of what a device reports free, what a driver may not give: it maps pages of 2 MiB and takes some for its own tables.
constexpr std::int64_t kLastOfDeviceBytes = static_cast<std::int64_t>(64 * kMiB);
constexpr std::int64_t kLargeContextBytes = static_cast<std::int64_t>(kGiB) * 9 / 5;

// The reader stores no figure of 2^56 bytes or more, so sums of a few of them cannot overflow.
ByteSpan SpanOf(const Figure& figure) {
  return {static_cast<std::int64_t>(figure.low_bytes), static_cast<std::int64_t>(figure.MiddleBytes()),
          static_cast<std::int64_t>(figure.high_bytes)};
}
ByteSpan Exactly(std::int64_t bytes) { return {bytes, bytes, bytes}; }
ByteSpan operator+(const ByteSpan& a, const ByteSpan& b) {
  return {a.low_bytes + b.low_bytes, a.value_bytes + b.value_bytes, a.high_bytes + b.high_bytes};
}
ByteSpan operator-(const ByteSpan& a, const ByteSpan& b) {
  return {a.low_bytes - b.high_bytes, a.value_bytes - b.value_bytes, a.high_bytes - b.low_bytes};
}
ByteSpan NotNegative(const ByteSpan& a) {
  return {std::max<std::int64_t>(a.low_bytes, 0), std::max<std::int64_t>(a.value_bytes, 0),
          std::max<std::int64_t>(a.high_bytes, 0)};
}
bool StraddlesZero(const ByteSpan& a) { return a.low_bytes < 0 && a.high_bytes >= 0; }

std::optional<ByteSpan> Known(const std::optional<Figure>& figure) {
  return figure ? std::optional(SpanOf(*figure)) : std::nullopt;
}
std::optional<std::uint64_t> Bytes(const std::optional<ByteSpan>& span) {
  return span ? std::optional(static_cast<std::uint64_t>(std::max<std::int64_t>(span->value_bytes, 0))) : std::nullopt;
}

class Judge {
 public:
  Judge(const OomMessage& message, const OomJudgeOptions& options) : message_(message) {
    verdict_.notes = message.notes;
    if (!options.unified_memory_card.empty()) {
      Note("unified_memory",
           absl::StrCat("a device of this size is a ", options.unified_memory_card,
                        ", whose memory is the host's own: what is free is the host's MemFree, so that the memory of "
                        "all programs and the page cache lie outside; nvidia-smi does not list them"));
    }
    total_ = Known(message.total);
    if (!total_ && options.capacity_bytes && *options.capacity_bytes < (std::uint64_t{1} << 56)) {
      total_ = Exactly(static_cast<std::int64_t>(*options.capacity_bytes));
    }
  }

  OomMessageVerdict Run() {
    ReadFigures();
    ReadOthers();
    FillAccounting();
    Decide();
    NameUnknown();
    verdict_.is_process_limit = oom::IsCachingAllocator(message_) && !HasNote("buffer_limit");
    verdict_.tried_meaning = oom::TriedMeaning(message_);
    oom::WriteEvidence(message_, verdict_);
    return std::move(verdict_);
  }

 private:
  void Note(absl::string_view name, std::string text) {
    verdict_.notes.push_back({std::string(name), std::move(text), 1});
  }
  void Conclude(OomVerdict kind, bool certain) {
    verdict_.kind = kind;
    verdict_.verdict_certain = certain;
  }

  void ReadFigures() {
    tried_ = verdict_.tried_interval = Known(message_.tried);
    // TensorFlow's pool looks for the rounded size, and prints it to the byte.
    const Figure* rounded = message_.family == "tf-bfc" ? message_.Detail("rounded_to") : nullptr;
    if (rounded != nullptr && tried_ && SpanOf(*rounded).low_bytes >= tried_->low_bytes &&
        SpanOf(*rounded).high_bytes <= tried_->high_bytes + kPoolUnitBytes) {
      tried_ = verdict_.tried_interval = SpanOf(*rounded);
    }
    free_ = Known(message_.free);
    // What is used of the whole device, by whomever, tells what is free of it.
    const Figure* used = message_.Detail("device_used");
    if (!free_ && used != nullptr && total_) free_ = NotNegative(*total_ - SpanOf(*used));
    limit_ = Known(message_.limit);
    reserved_ = Known(message_.reserved);
    verdict_.tried_bytes = Bytes(tried_);
    verdict_.request_interval = oom::RequestInterval(message_);
    if (verdict_.request_interval && verdict_.request_interval->low_bytes == verdict_.request_interval->high_bytes) {
      verdict_.request_bytes = Bytes(verdict_.request_interval);
    }
    ReadAllocated();
    ReadGap();
    ReadOutside();
    if (tried_ && free_) verdict_.missing = *tried_ - *free_;
    if (tried_ && free_ && verdict_.gap) verdict_.headroom = *verdict_.gap + *free_ - *tried_;
    if (limit_ && allocated_ && tried_) verdict_.limit_headroom = *limit_ - *allocated_ - *tried_;
  }

  // PyTorch prints its private pools' free blocks inside "allocated"; here they are holes again.
  void ReadAllocated() {
    allocated_ = Known(message_.allocated);
    private_pool_ = Known(message_.private_pool);
    if (!allocated_ || !private_pool_) return;
    if (private_pool_->low_bytes > allocated_->high_bytes) {
      Note("private_pool_over_allocated", "the private pools' figure is more than the allocated one; it is left out");
      private_pool_.reset();
      return;
    }
    allocated_ = NotNegative(*allocated_ - *private_pool_);
    Note("private_pool_blocks_are_free",
         absl::StrCat("the ", message_.private_pool->printed,
                      " \"allocated in private pools\" are free blocks inside "
                      "those pools, which PyTorch adds to allocated: nothing live is in them"));
  }

  void ReadGap() {
    if (!oom::HoldsHoles(message_)) return;
    if (message_.unallocated_reserved) {
      stranded_ = SpanOf(*message_.unallocated_reserved);
    } else if (reserved_ && allocated_ && !message_.private_pool) {
      stranded_ = NotNegative(*reserved_ - *allocated_);
    }
    if (!stranded_) return;
    verdict_.gap = private_pool_ ? *stranded_ + *private_pool_ : *stranded_;
  }

  void ReadOutside() {
    if (!total_ || !reserved_ || !free_ || !oom::HoldsHoles(message_)) return;
    const ByteSpan outside = *total_ - *reserved_ - *free_;
    if (outside.high_bytes < 0) {
      Note("outside_not_computable",
           "reserved and free together are more than the device has, so what is outside this "
           "allocator cannot be told");
      return;
    }
    verdict_.outside = NotNegative(outside);
    ReadOwn();
    if (message_.processes.empty() && outside.value_bytes > kSmallContextBytes) {
      Note("outside_not_named", absl::StrCat(FormatSignedBytes(outside.value_bytes),
                                             " outside may include another process or an earlier run "
                                             "(a context alone is 0.5 to 1.8 GiB): not in this message"));
    }
  }

  // This process under its own name, and what it holds beside its allocator.
  void ReadOwn() {
    for (const ProcessUse& process : message_.processes) {
      if (!process.is_this_process || !process.used || process.used->high_bytes < message_.reserved->low_bytes) {
        continue;
      }
      verdict_.own_bytes = process.used->MiddleBytes();
      verdict_.own_outside_bytes = Bytes(SpanOf(*process.used) - *reserved_);
    }
  }

  // Everything that the arithmetic would have used and the message does not tell.
  void NameUnknown() {
    if (verdict_.kind == OomVerdict::kHostMemory || HasNote("not_out_of_memory")) return;
    if (message_.family == "vllm" && verdict_.verdict_certain) return;  // its own sum needs none of them
    std::vector<std::string> unknown;
    const auto name = [&unknown](bool is_known, const char* what) {
      if (!is_known) unknown.push_back(what);
    };
    name(tried_.has_value(), "the size asked for");
    name(total_.has_value(), "the device's capacity");
    name(free_.has_value(), "what the device had free");
    name(allocated_.has_value(), "what was allocated");
    name(reserved_.has_value(), "what was reserved");
    name(verdict_.outside.has_value(), "what is outside this allocator");
    if (!unknown.empty()) Note("not_told", absl::StrCat("not in this message: ", absl::StrJoin(unknown, ", ")));
  }

  // The failing process, where the message calls it by number only (containers): the largest that can hold what is
  // reserved. Leaving out the largest keeps what is charged to others a lower bound.
  const ProcessUse* OwnByNumber() const {
    const ProcessUse* own = nullptr;
    for (const ProcessUse& process : message_.processes) {
      if (process.is_this_process) return nullptr;
      if (!process.used || process.device.has_value() ||
          (reserved_ && SpanOf(*process.used).high_bytes < reserved_->low_bytes))
        continue;
      if (own == nullptr || process.used->low_bytes > own->used->low_bytes) own = &process;
    }
    return own;
  }

  void ReadOthers() {
    const ProcessUse* own = OwnByNumber();
    if (own != nullptr && own->pid) {
      Note("own_process_by_size", absl::StrCat("process ", *own->pid,
                                               " is taken for the failing one: it can hold what "
                                               "is reserved (inside a container a process sees itself by number)"));
    }
    ByteSpan sum;
    bool any = false;
    for (const ProcessUse& process : message_.processes) {
      if (process.is_this_process || &process == own || !process.used || process.device.has_value()) continue;
      sum = sum + SpanOf(*process.used);
      verdict_.other_processes.push_back(process.used->MiddleBytes());
      any = true;
    }
    if (any) verdict_.others = sum;
  }

  // What somebody else must hold at least; `named` says whether the message names them.
  std::int64_t OthersAtLeast(bool* named) const {
    *named = verdict_.others.has_value();
    if (*named) return verdict_.others->low_bytes;
    if (!message_.processes.empty() || !verdict_.outside) return 0;
    return std::max<std::int64_t>(verdict_.outside->low_bytes - kLargeContextBytes, 0);
  }

  void FillAccounting() {
    OomAccounting& parts = verdict_.accounting;
    parts.total_bytes = Bytes(total_);
    parts.allocated_bytes = Bytes(allocated_);
    parts.stranded_bytes = Bytes(stranded_);
    parts.private_pool_bytes = Bytes(private_pool_);
    // PyTorch 2.9 and later name private pools whenever they hold anything free.
    if (message_.family == "pt-alloc-conf-renamed" && stranded_ && !message_.private_pool) parts.private_pool_bytes = 0;
    parts.free_bytes = Bytes(free_);
    parts.reserved_bytes = Bytes(reserved_);
    // What a printed memory summary tells beside.
    if (const Figure* requested = message_.Detail("requested_memory"); requested != nullptr && allocated_) {
      parts.live_bytes = std::min(requested->MiddleBytes(), *parts.allocated_bytes);
      parts.rounding_bytes = *parts.allocated_bytes - *parts.live_bytes;
    }
    if (allocated_ && stranded_) {
      parts.reserved_bytes = *parts.allocated_bytes + *parts.stranded_bytes + parts.private_pool_bytes.value_or(0);
    }
    if (!verdict_.outside) return;
    const std::uint64_t inside = *parts.reserved_bytes + *parts.free_bytes;
    if (inside <= *parts.total_bytes) parts.outside_bytes = *parts.total_bytes - inside;
  }

  void Decide() {
    if (HasNote("not_a_failure")) return Conclude(OomVerdict::kHealthy, true);
    // A launcher sees that a process was killed, and not by whom.
    const bool is_by_hearsay = message_.family == "elastic" || message_.family == "dataloader";
    if (HasNote("host_memory")) return Conclude(OomVerdict::kHostMemory, !is_by_hearsay);
    if (HasNote("not_out_of_memory")) return Conclude(OomVerdict::kUnknown, true);
    if (HasNote("at_compile_time")) return Conclude(OomVerdict::kCapacity, true);
    if (HasNote("pool_limit") || HasNote("fraction_limit") || HasNote("own_check") || HasNote("buffer_limit")) {
      return Conclude(OomVerdict::kLimit, true);
    }
    if (message_.family == "vllm") return DecideForVllm();
    if (HasNote("device_table")) return DecideByTable();
    if (!tried_) return;
    if (total_ && tried_->low_bytes > total_->high_bytes) return Conclude(OomVerdict::kCapacity, true);
    if (message_.family == "pt-async") return DecideForAsync();
    if (!oom::HoldsHoles(message_)) return DecideByLimit();
    if (total_ && allocated_ && tried_->low_bytes + allocated_->low_bytes > total_->high_bytes) {
      return Conclude(OomVerdict::kCapacity, true);
    }
    if (!verdict_.headroom) return DecideWithoutGap();
    if (StraddlesZero(*verdict_.headroom)) {
      Note("rounding_could_flip", absl::StrCat("without holes the request fits or misses by less than the printed "
                                               "figures can tell: ",
                                               FormatSignedBytes(verdict_.headroom->low_bytes), " to ",
                                               FormatSignedBytes(verdict_.headroom->high_bytes)));
    }
    verdict_.headroom->value_bytes < 0 ? DecideShort() : DecideFits();
    if (StraddlesZero(*verdict_.headroom)) verdict_.verdict_certain = false;
  }

  bool HasNote(absl::string_view name) const { return message_.FindNote(name) != nullptr; }

  // MPS and CuPy: what is held, what else counts against the limit, and the request, against the limit.
  void DecideByLimit() {
    if (!limit_ || !reserved_) return DecideByFree();
    ByteSpan room = *limit_ - *reserved_ - *tried_;
    if (message_.other_in_use) room = room - SpanOf(*message_.other_in_use);
    verdict_.limit_headroom = room;
    // TensorFlow's pool gives nothing back: what its limit leaves is in holes.
    if (message_.family == "tf-bfc" && room.low_bytes >= 0) return Conclude(OomVerdict::kFragmentation, true);
    if (room.low_bytes >= 0) return;
    Conclude(OomVerdict::kLimit, room.high_bytes < 0);
    if (room.high_bytes >= 0)
      Note("rounding_could_flip", "the limit is passed or kept by less than the print can tell");
  }

  // No pool stands between the program and the device: what the device had free decides. Who holds the rest is not
  // told.
  void DecideByFree() {
    const bool has_pool =
        message_.family == "paddle" || message_.family == "pt-warning";  // which may have room in holes
    if (has_pool || !free_ || tried_->low_bytes <= free_->high_bytes) return;
    Conclude(OomVerdict::kCapacity, false);
  }

  // The pool of cudaMallocAsync: what is not this program's is the driver's, the pool's holes or somebody else's.
  void DecideForAsync() {
    if (!total_ || !allocated_) return;
    const ByteSpan room = *total_ - *allocated_ - *tried_;
    if (room.high_bytes < 0) return Conclude(OomVerdict::kCapacity, true);
    if (verdict_.limit_headroom && verdict_.limit_headroom->high_bytes < 0) return Conclude(OomVerdict::kLimit, true);
    if (IsNearlyNothing(room, *total_)) return Conclude(OomVerdict::kNearlyFull, false);
    if (free_ && free_->high_bytes < tried_->low_bytes) Conclude(OomVerdict::kOutside, false);
  }

  // A message without figures beside a table of the device: full, and by whom is not sure.
  void DecideByTable() {
    const bool is_full =
        free_ && (tried_ ? free_->low_bytes < tried_->high_bytes : IsShare(*free_, *total_, kFullDeviceShare));
    const bool is_others = std::any_of(message_.processes.begin(), message_.processes.end(),
                                       [](const ProcessUse& process) { return process.device.has_value(); });
    if (is_full) Conclude(is_others ? OomVerdict::kOutside : OomVerdict::kCapacity, false);
  }

  // With so little to spare no setting packs: the rule of a snapshot's verdict.
  static bool IsNearlyNothing(const ByteSpan& spare, const ByteSpan& of) {
    return IsShare(spare, of, core::kNearlyFullShare);
  }
  static bool IsShare(const ByteSpan& part, const ByteSpan& of, double share) {
    return static_cast<double>(part.value_bytes) < share * static_cast<double>(of.value_bytes);
  }

  // vLLM checks before it serves: what it asks for is more than what it measured as left.
  void DecideForVllm() {
    const std::optional<ByteSpan> left =
        message_.Detail("kv_cache") != nullptr && !free_ ? std::optional(SpanOf(*message_.Detail("kv_cache"))) : free_;
    if (tried_ && left && tried_->low_bytes > left->high_bytes) return Conclude(OomVerdict::kLimit, true);
    if (HasNote("no_cache_blocks")) Conclude(OomVerdict::kLimit, true);
  }

  // Truncated, or figures that contradict each other.
  void DecideWithoutGap() {
    if (free_ && free_->low_bytes >= tried_->high_bytes) DecideFreeEnough();
  }

  // Does not fit even without holes.
  void DecideShort() {
    bool named = false;
    const std::int64_t others = OthersAtLeast(&named);
    const std::int64_t shortfall = -verdict_.headroom->low_bytes;
    if (others > 0 && others >= shortfall) return Conclude(OomVerdict::kOutside, named);
    Conclude(OomVerdict::kCapacity, others < -verdict_.headroom->high_bytes);
    if (others > 0 && !verdict_.verdict_certain) {
      Note("rounding_could_flip", "what others hold and what is missing differ by less than the print can tell");
    }
  }

  void DecideFits() {
    if (verdict_.limit_headroom && reserved_ && (*limit_ - *reserved_ - *tried_).value_bytes < 0)
      return DecideUnderLimit();
    const bool is_free_enough = free_->low_bytes >= tried_->high_bytes;
    if (is_free_enough && (*free_ - *tried_).value_bytes > kLastOfDeviceBytes) return DecideFreeEnough();
    bool named = false;
    const std::int64_t others = OthersAtLeast(&named);
    if (others > verdict_.gap->high_bytes && others >= verdict_.missing->high_bytes) {
      return Conclude(OomVerdict::kOutside, named && !is_free_enough);
    }
    const bool is_full = reserved_ && IsNearlyNothing(*verdict_.headroom, *reserved_ + *free_);
    Conclude(is_full ? OomVerdict::kNearlyFull : OomVerdict::kFragmentation, verdict_.missing->low_bytes > 0);
    if (!verdict_.accounting.private_pool_bytes) {
      Note("stranded_may_include_private_pools",
           "this message does not tell private pools (CUDA graphs, MemPool) apart: "
           "what is free in them is counted as stranded");
    }
    if (is_free_enough) {
      Note("free_to_the_last",
           absl::StrCat("the device reported ", message_.free->printed, " free for ", message_.tried->printed,
                        ": so near its end a driver does not give all that it reports, or it was freed just after the "
                        "failure"));
    } else if (verdict_.missing->low_bytes <= 0) {
      Note("rounding_could_flip", "free memory and the request differ by less than the printed figures can tell");
    }
  }

  // The limit leaves no room for the segment: without holes would it?
  void DecideUnderLimit() {
    const ByteSpan& room = *verdict_.limit_headroom;
    Conclude(room.value_bytes < 0 ? OomVerdict::kLimit : OomVerdict::kFragmentation, !StraddlesZero(room));
    if (StraddlesZero(room)) {
      Note("rounding_could_flip",
           "under the limit, without holes, the request fits or misses by less than the print "
           "can tell");
    }
  }

  // The device has enough free, so its memory is not what stopped the request.
  void DecideFreeEnough() {
    Note("free_exceeds_tried",
         absl::StrCat("the device reported ", message_.free->printed, " free for ", message_.tried->printed,
                      ": a limit this message does not name (a container, a virtual GPU, the system's commit limit, "
                      "throw_on_cudamalloc_oom), or memory that was freed just after the failure"));
    bool named = false;
    const std::int64_t others = OthersAtLeast(&named);
    Conclude(named && others >= tried_->high_bytes ? OomVerdict::kOutside : OomVerdict::kLimit, false);
  }

  const OomMessage& message_;
  OomMessageVerdict verdict_;
  std::optional<ByteSpan> total_;
  std::optional<ByteSpan> allocated_;
  std::optional<ByteSpan> reserved_;
  std::optional<ByteSpan> free_;
  std::optional<ByteSpan> tried_;
  std::optional<ByteSpan> limit_;
  std::optional<ByteSpan> stranded_;
  std::optional<ByteSpan> private_pool_;
};

}  // namespace

absl::string_view VerdictName(OomVerdict verdict) {
  switch (verdict) {
    case OomVerdict::kCapacity:
      return "capacity";
    case OomVerdict::kFragmentation:
      return "fragmentation";
    case OomVerdict::kNearlyFull:
      return "nearly_full";
    case OomVerdict::kOutside:
      return "outside";
    case OomVerdict::kLeak:
      return "leak";
    case OomVerdict::kLimit:
      return "limit";
    case OomVerdict::kHostMemory:
      return "host_memory";
    case OomVerdict::kHealthy:
      return "healthy";
    case OomVerdict::kUnknown:
      break;
  }
  return "unknown";
}

std::string VerdictWords(OomVerdict verdict) {
  if (verdict == OomVerdict::kOutside) return "another process or library";
  return absl::StrReplaceAll(VerdictName(verdict), {{"_", " "}});
}

bool OomMessageVerdict::HasNote(absl::string_view name) const {
  return std::any_of(notes.begin(), notes.end(), [name](const trace::Note& note) { return note.name == name; });
}

OomMessageVerdict JudgeOomMessage(const OomMessage& message, const OomJudgeOptions& options) {
  return Judge(message, options).Run();
}

}  // namespace ashlar::analyses
