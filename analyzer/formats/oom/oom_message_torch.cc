// The messages of this project's own allocator (allocator/core/oom_report.h), by itself or in PyTorch's error.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analyzer/formats/oom/oom_parser.h"

namespace ashlar::formats::oom {
namespace {

// "live 13.09 GiB, rounding 72.00 MiB": what the program holds, in blocks.
void TakeAllocated(Cursor& cursor, OomMessage& message) {
  Cursor look = cursor;
  std::optional<Figure> live, rounding;
  if (!TakeFigureAfter(look, "partssumexactly):live", 400, message, live)) return;
  if (!TakeFigureAfter(look, ",rounding", 0, message, rounding) || !live || !rounding) return;
  message.allocated = Figure{live->low_bytes + rounding->low_bytes, live->high_bytes + rounding->high_bytes,
                             absl::StrCat(live->printed, " + ", rounding->printed)};
  cursor = look;
}

// "out of memory: 220.00 MiB requested (a segment of 220.00 MiB), device free 200.00 MiB of 15.78 GiB, reserved 14.44
// GiB", with the lines behind it where they are there. `tried` is the segment, as in PyTorch's messages.
std::optional<FoundMessage> ParseFigures(Cursor cursor, FoundMessage finding) {
  OomMessage& message = finding.message;
  std::optional<Figure> requested;
  if (!TakeFigureAfter(cursor, "outofmemory:", 0, message, requested)) return std::nullopt;
  if (!cursor.Take("requested")) return std::nullopt;
  if (requested) message.details.push_back({"requested", *requested});
  const bool has_segment = TakeFigureAfter(cursor, "(asegmentof", 0, message, message.tried);
  cursor.Take(",rejectedbythrow_on_cudamalloc_oom");
  const bool is_whole = has_segment && TakeFigureAfter(cursor, "),devicefree", 0, message, message.free) &&
                        TakeFigureAfter(cursor, "of", 0, message, message.total) &&
                        TakeFigureAfter(cursor, ",reserved", 0, message, message.reserved);
  if (!message.tried) message.tried = requested;
  message.truncated = !is_whole;
  if (is_whole) TakeAllocated(cursor, message);
  finding.end = cursor.at();
  return finding;
}

std::optional<FoundMessage> ParseAlone(const SqueezedText& text, std::size_t at) {
  return ParseFigures(Cursor(text, at), Begin("ashlar", at));
}

// "CUDA out of memory. GPU 0: out of memory: 220.00 MiB requested ...": the plug-in's, as torch.OutOfMemoryError.
std::optional<FoundMessage> ParseInTorch(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("ashlar", at);
  Cursor cursor(text, at);
  cursor.Take("CUDAoutofmemory.GPU");
  const std::optional<std::int64_t> device = cursor.TakeInteger();
  if (!device || *device > 1'000'000 || !cursor.Take(":")) return std::nullopt;
  finding.message.device = static_cast<int>(*device);
  return ParseFigures(cursor, finding);
}

}  // namespace

const std::vector<Anchor>& OurAnchors() {
  static const auto& anchors =
      *new std::vector<Anchor>{{"CUDAoutofmemory.GPU", &ParseInTorch}, {"outofmemory:", &ParseAlone}};
  return anchors;
}

// PyTorch's messages: the bracketed form (0.4 to 2.0, and NPU to this day), the sentences (2.1 and later, HIP, XPU),
// the MPS form, and the bare driver texts.

namespace {

constexpr std::size_t kClauseReach = 160;  // text between two clauses of one message (log prefixes, ellipses)

// What the clauses told beside figures; decides the family.
struct Seen {
  bool bracket = false;
  bool sentences = false;
  bool cached = false;
  bool typo = false;
  bool hint = false;
  bool renamed_conf = false;
  bool closed = false;  // the last clause of the form was read
  bool complete = false;
  int clauses = 0;
};

class TorchReader {
 public:
  TorchReader(const SqueezedText& text, std::size_t at) : cursor_(text, at) {}

  Cursor& cursor() { return cursor_; }
  OomMessage& message() { return message_; }
  Seen& seen() { return seen_; }

  // Reads clauses until none is near; leaves the cursor behind the last.
  void ReadClauses() {
    while (SkipToClause()) {
    }
  }

 private:
  bool SkipToClause() {
    const std::size_t start = cursor_.at();
    for (std::size_t skipped = 0; skipped <= kClauseReach; ++skipped) {
      cursor_.MoveTo(start + skipped);
      if (cursor_.AtEnd() || AtNextMessage(skipped)) break;
      if (skipped > 0 && cursor_.InsideNumber()) continue;
      if (TakeClause()) return true;
      if (cursor_.Sees("Ifreserved") || cursor_.Sees("Pleaseuse")) break;
    }
    cursor_.MoveTo(start);
    return false;
  }

  bool AtNextMessage(std::size_t skipped) const {
    return skipped > 0 && (cursor_.Sees("outofmemory") || cursor_.Sees("Triedtoallocate"));
  }

  bool TakeClause() {
    const std::size_t start = cursor_.at();
    if (TakeSentence() || TakeBracketed()) {
      ++seen_.clauses;
      return true;
    }
    cursor_.MoveTo(start);
    return false;
  }

  // `before` <figure> `after`; stores and says whether it was there.
  bool TakeAround(absl::string_view before, absl::string_view after, std::optional<Figure>& slot,
                  absl::string_view name) {
    const std::size_t start = cursor_.at();
    if (cursor_.Take(before)) {
      const std::optional<Figure> figure = cursor_.TakeFigure();
      if (figure && cursor_.Take(after)) {
        StoreFigure(message_, slot, *figure, name);
        return true;
      }
    }
    cursor_.MoveTo(start);
    return false;
  }

  bool TakeSentence() {
    if (TakeDeviceSentence() || TakeProcess()) return true;
    if (TakeAround("ofwhich", "isfree", message_.free, "free")) return true;
    if (TakeAround("Oftheallocatedmemory", "isallocatedbyPyTorch", message_.allocated, "allocated")) return true;
    if (TakeAround("with", "allocatedinprivatepools", message_.private_pool, "in private pools")) return true;
    if (!TakeAround("and", "isreservedbyPyTorchbutunallocated", message_.unallocated_reserved, "unallocated")) {
      return false;
    }
    seen_.closed = true;
    return true;
  }

  // "GPU 0 has a total capac(i)ty of 4.00 GiB"
  bool TakeDeviceSentence() {
    if (!cursor_.Take("GPU") && !cursor_.Take("NPU") && !cursor_.Take("Device")) return false;
    const std::optional<std::int64_t> device = cursor_.TakeInteger();
    if (!device || !cursor_.Take("hasatotalcapac")) return false;
    seen_.typo = seen_.typo || cursor_.Sees("ty");
    if (!cursor_.Take("tyof") && !cursor_.Take("ityof")) return false;
    const std::optional<Figure> figure = cursor_.TakeFigure();
    if (!figure) return false;
    SetDevice(*device);
    StoreFigure(message_, message_.total, *figure, "total capacity");
    seen_.sentences = true;
    return true;
  }

  bool TakeProcess() {
    ProcessUse process;
    if (cursor_.Take("Includingnon-PyTorchmemory,thisprocesshas")) {
      process.is_this_process = true;
    } else if (cursor_.Take("Process")) {
      process.pid = cursor_.TakeInteger();
      if (!process.pid || !cursor_.Take("has")) return false;
    } else {
      return false;
    }
    const std::optional<Figure> figure = cursor_.TakeFigure();
    if (!figure || !cursor_.Take("memoryinuse")) return false;
    StoreFigure(message_, process.used, *figure, "memory in use by a process");
    message_.processes.push_back(std::move(process));
    seen_.sentences = true;
    return true;
  }

  // "(GPU 0; 14.76 GiB total capacity; ...; 13.06 GiB reserved in total by PyTorch)"
  bool TakeBracketed() {
    if (TakeDeviceBracket()) return true;
    if (TakeAround("", "totalcapacity", message_.total, "total capacity")) return true;
    if (TakeAround("", "alreadyallocated", message_.allocated, "allocated")) return true;
    if (TakeAround("", "currentactive", message_.active, "active")) return true;
    if (TakeAround("", "free", message_.free, "free")) return true;
    if (TakeAround("", "allowed", message_.limit, "allowed")) return true;
    if (TakeAround("", "cached", message_.unallocated_reserved, "cached")) {
      seen_.cached = true;
      seen_.closed = cursor_.Take(")");
      return true;
    }
    if (TakeAround("", "reservedintotalbyPyTorch", message_.reserved, "reserved")) {
      seen_.closed = cursor_.Take(")");
      return true;
    }
    return TakeInactive();
  }

  bool TakeDeviceBracket() {
    if (!cursor_.Take("(GPU") && !cursor_.Take("(NPU") && !cursor_.Take("(XPU")) return false;
    const std::optional<std::int64_t> device = cursor_.TakeInteger();
    if (!device || !cursor_.Take(";")) return false;
    SetDevice(*device);
    seen_.bracket = true;
    return true;
  }

  bool TakeInactive() {
    std::optional<Figure> inactive;
    if (!TakeAround("", "inactive", inactive, "inactive")) return false;
    if (inactive) message_.details.push_back({"inactive", *inactive});
    seen_.closed = cursor_.Take(")");
    return true;
  }

  void SetDevice(std::int64_t device) {
    if (!message_.device && device <= 1'000'000) message_.device = static_cast<int>(device);
  }

  Cursor cursor_;
  OomMessage message_;
  Seen seen_;
};

// The advice behind the figures; where it ends tells whether the message is whole.
void ReadHint(TorchReader& reader, absl::string_view backend) {
  Cursor& cursor = reader.cursor();
  Seen& seen = reader.seen();
  Cursor look = cursor;
  if (look.SkipPast("Pleaseuse", 8) && look.SkipPast("empty_cache", 4) && look.SkipPast("cachedmemory", 60)) {
    seen.complete = true;
    cursor = look;
    return;
  }
  look = cursor;
  if (!look.SkipPast("Ifreserved", 8)) {
    seen.complete = seen.closed && seen.bracket;
    return;
  }
  seen.hint = true;
  Cursor conf = look;
  seen.renamed_conf = conf.SkipPast("trysettingPYTORCH_ALLOC_CONF", 80);
  cursor = look;
  const bool whole_advice = look.SkipPast("toavoidfragmentation", 160);
  if (whole_advice) cursor = look;
  if (backend == "NPU") {
    seen.complete = whole_advice;
    return;
  }
  Cursor documentation = look;
  if (!whole_advice || !documentation.SkipPast("MemoryManagement", 40)) return;
  cursor = documentation;
  seen.complete = documentation.Take("andPYTORCH_CUDA_ALLOC_CONF") || documentation.Take("andPYTORCH_HIP_ALLOC_CONF") ||
                  (documentation.Take("(http") && documentation.SkipPast(")", 160));
  if (seen.complete) cursor = documentation;
}

std::string FamilyOf(const OomMessage& message, const Seen& seen, absl::string_view backend) {
  if (backend == "HIP") return "pt-hip";
  if (backend == "XPU") return "pt-xpu";
  if (backend == "NPU") return "pt-npu";
  if (seen.cached) return "pt-cached";
  if (seen.bracket) {
    if (message.limit) return "pt-reserved-allowed";
    return seen.hint ? "pt-reserved-hint" : "pt-reserved";
  }
  if (!seen.sentences) return "pt-short";
  if (seen.typo) return "pt-capacty-typo";
  if (message.private_pool) return "pt-capacity-private-pools";
  if (message.limit) return "pt-capacity-allowed";
  return seen.renamed_conf ? "pt-alloc-conf-renamed" : "pt-capacity";
}

Figure SumOf(const Figure& left, const Figure& right) {
  return {left.low_bytes + right.low_bytes, left.high_bytes + right.high_bytes,
          absl::StrCat(left.printed, " + ", right.printed)};
}

bool IsQuote(const SqueezedText& text, std::size_t at) {
  return at > 0 && (text.text()[at - 1] == '"' || text.text()[at - 1] == '\'');
}

// The setting that the message advises; empty: none.
std::string AdviceIn(absl::string_view message) {
  for (const absl::string_view setting : {"expandable_segments", "max_split_size_mb"}) {
    if (absl::StrContains(message, setting)) return std::string(setting);
  }
  return "";
}

constexpr absl::string_view kNoAdvice =
    "no advice follows the figures: PyTorch 2.14 and later leave it out where expandable segments are on (in an older "
    "version's message the end would be missing)";

std::optional<FoundMessage> ReadTorch(const SqueezedText& text, std::size_t begin, std::size_t tried_at,
                                      absl::string_view backend, bool head_missing) {
  TorchReader reader(text, tried_at);
  Cursor& cursor = reader.cursor();
  cursor.Take(".");
  const bool says_tried = cursor.Take("Triedtoallocate");
  OomMessage& message = reader.message();
  if (says_tried) {
    if (const std::optional<Figure> figure = cursor.TakeFigure()) {
      StoreFigure(message, message.tried, *figure, "tried to allocate");
    }
    reader.ReadClauses();
    ReadHint(reader, backend);
  }
  const Seen& seen = reader.seen();
  const bool figures = message.tried.has_value() || seen.clauses > 0;
  if (head_missing && seen.clauses == 0) return std::nullopt;
  if (!figures && (IsQuote(text, begin) || !(cursor.AtEnd() || !says_tried))) return std::nullopt;
  if (message.allocated && message.unallocated_reserved && !message.reserved) {
    message.reserved = SumOf(*message.allocated, *message.unallocated_reserved);
  }
  message.truncated = head_missing || !seen.complete;
  message.family = FamilyOf(message, seen, backend);
  message.advised = AdviceIn(text.text().substr(tried_at, cursor.at() - tried_at));
  if (!head_missing && seen.sentences && seen.closed && !seen.hint && !seen.complete) {
    message.truncated = false;
    if (!seen.typo) message.AddNote("no_advice", kNoAdvice);
  }
  const std::size_t end = cursor.at();
  return FoundMessage{std::move(message), begin, end};
}

template <int kBackendLength>
std::optional<FoundMessage> ParseNamed(const SqueezedText& text, std::size_t at) {
  Cursor cursor(text, at);
  const absl::string_view backend = text.text().substr(at, kBackendLength);
  cursor.MoveTo(at + kBackendLength + absl::string_view("outofmemory").size());
  if (cursor.Sees(".Allocationwaspreemptivelyrejected")) return std::nullopt;  // ParseRejected reads it
  // "CUDA out of memory" in prose or in somebody's code is no message; the sentence ends, or the text does.
  if (!cursor.AtEnd() && !cursor.Sees(".") && !cursor.Sees("Tried")) return std::nullopt;
  return ReadTorch(text, at, cursor.at(), backend, /*head_missing=*/false);
}

// "Tried to allocate ..." whose beginning was cut off, or a backend that names itself in no known way.
std::optional<FoundMessage> ParseTried(const SqueezedText& text, std::size_t at) {
  const bool has_head = absl::EndsWith(text.text().substr(0, at), "utofmemory.");
  return ReadTorch(text, at, at, "", /*head_missing=*/!has_head);
}

// "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit.
// Requested size: 128.00 MiB"
std::optional<FoundMessage> ParseRejected(const SqueezedText& text, std::size_t at) {
  OomMessage message;
  message.family = "pt-rejected";
  Cursor cursor(text, at);
  cursor.SkipPast("per_process_memory_fractionlimit.", 60);
  if (cursor.SkipPast("Requestedsize:", 4)) {
    if (const std::optional<Figure> figure = cursor.TakeFigure(/*unit_optional=*/true)) {
      StoreFigure(message, message.tried, *figure, "requested size");
    }
  }
  message.truncated = !message.tried.has_value();
  message.AddNote("fraction_limit", "the memory fraction stopped it before the device was asked");
  return FoundMessage{std::move(message), at, cursor.at()};
}

// "MPS backend out of memory (MPS allocated: 6.04 GB, other allocations: 1.04 GB, max allowed: 6.77 GB). Tried to
// allocate 459.07 MB on private pool." "MPS allocated" is what the allocator holds: heaps, cached ones included.
std::optional<FoundMessage> ParseMps(const SqueezedText& text, std::size_t at) {
  OomMessage message;
  message.family = "pt-mps";
  Cursor cursor(text, at);
  cursor.Take("MPSbackendoutofmemory");
  const auto take = [&](absl::string_view words, std::size_t reach, std::optional<Figure>& slot) {
    Cursor look = cursor;
    if (!look.SkipPast(words, reach)) return;
    if (const std::optional<Figure> figure = look.TakeFigure()) {
      StoreFigure(message, slot, *figure, words);
      cursor = look;
    }
  };
  take("(MPSallocated:", 0, message.reserved);
  take("otherallocations:", 4, message.other_in_use);
  take("maxallowed:", 4, message.limit);
  take("Triedtoallocate", 8, message.tried);
  message.truncated = !cursor.SkipPast("pool", 24);
  if (!message.reserved && !message.tried && IsQuote(text, at)) return std::nullopt;
  return FoundMessage{std::move(message), at, cursor.at()};
}

std::optional<FoundMessage> Bare(const SqueezedText& text, std::size_t at, absl::string_view words,
                                 absl::string_view family) {
  if (IsQuote(text, at)) return std::nullopt;
  OomMessage message;
  message.family = std::string(family);
  return FoundMessage{std::move(message), at, at + words.size()};
}

constexpr absl::string_view kRuntimeError = "cudaruntimeerror(2):outofmemory";
constexpr absl::string_view kCheckFail = "THCudaCheckFAIL";

std::optional<FoundMessage> ParseRuntimeError(const SqueezedText& text, std::size_t at) {
  return Bare(text, at, kRuntimeError, "pt-pre-1.0");
}

std::optional<FoundMessage> ParseCheckFail(const SqueezedText& text, std::size_t at) {
  Cursor cursor(text, at);
  if (!cursor.SkipPast("error=2:outofmemory", 300)) return std::nullopt;
  OomMessage message;
  message.family = "pt-pre-1.0";
  return FoundMessage{std::move(message), at, cursor.at()};
}

std::optional<FoundMessage> ParsePlain(const SqueezedText& text, std::size_t at) {
  Cursor cursor(text, at);
  cursor.SkipPast("outofmemory", 24);
  return Bare(text, at, text.text().substr(at, cursor.at() - at), "pt-plain");
}

}  // namespace

const std::vector<Anchor>& TorchAnchors() {
  static const auto& anchors = *new std::vector<Anchor>{{"CUDAoutofmemory", &ParseNamed<4>},
                                                        {"HIPoutofmemory", &ParseNamed<3>},
                                                        {"XPUoutofmemory", &ParseNamed<3>},
                                                        {"NPUoutofmemory", &ParseNamed<3>},
                                                        {"MPSbackendoutofmemory", &ParseMps},
                                                        {"Triedtoallocate", &ParseTried},
                                                        {"Allocationwaspreemptivelyrejected", &ParseRejected},
                                                        {kRuntimeError, &ParseRuntimeError},
                                                        {kCheckFail, &ParseCheckFail},
                                                        {"CUDAerror:outofmemory", &ParsePlain},
                                                        {"HIPerror:outofmemory", &ParsePlain},
                                                        {"CUDAdrivererror:outofmemory", &ParsePlain}};
  return anchors;
}

}  // namespace ashlar::formats::oom
