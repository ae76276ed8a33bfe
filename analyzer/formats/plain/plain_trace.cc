#include "analyzer/formats/plain/plain_trace.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/trace/request_window.h"
#include "analyzer/formats/decimal.h"
#include "analyzer/formats/mapped_file.h"

namespace ashlar::formats {
namespace {

using trace::Op;
using trace::OpKind;

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

// From file ids to dense ids, with whether the id is live. Small ids (nearly all, in nearly all files) index a
// table, the rest hash.
class IdMap {
 public:
  explicit IdMap(std::size_t text_bytes) : table_limit_(text_bytes / 4 + 1024) {}

  // The slot of an id: 0 = never seen, else the dense id + 1, with kLive set while allocated.
  ABSL_ATTRIBUTE_ALWAYS_INLINE std::uint32_t& Slot(std::uint64_t id) {
    if (id < table_.size()) [[likely]]
      return table_[id];
    return SlotOfNew(id);
  }
  std::uint32_t NextDense() { return ++count_; }
  std::uint32_t count() const { return count_; }

  static constexpr std::uint32_t kLive = std::uint32_t{1} << 31;

 private:
  ABSL_ATTRIBUTE_NOINLINE std::uint32_t& SlotOfNew(std::uint64_t id) {
    if (id >= table_limit_) return sparse_[id];
    table_.resize(std::min<std::size_t>(table_limit_, std::max<std::size_t>(id + 1, 2 * table_.size() + 1024)));
    return table_[id];
  }

  std::size_t table_limit_;
  std::vector<std::uint32_t> table_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> sparse_;
  std::uint32_t count_ = 0;
};

constexpr std::size_t kMostCounted = 64 * kMiB;

// Of a long text its beginning is counted, and the rest taken to be alike.
std::size_t LinesOf(absl::string_view text) {
  const absl::string_view begin = text.substr(0, kMostCounted);
  const auto lines = static_cast<std::size_t>(std::count(begin.begin(), begin.end(), '\n'));
  if (begin.size() == text.size()) return lines;
  return static_cast<std::size_t>(static_cast<double>(lines) * 1.05 * static_cast<double>(text.size()) /
                                  static_cast<double>(begin.size()));
}

bool IsTraceBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool EndsField(char c) { return IsTraceBlank(c) || c == '\n' || c == '#'; }

// A scanner over the text. The place is handed from step to step, so that it stays in a register; a step that fails
// records why and returns nullptr. What makes messages is kept out of line, away from the fast path.
class TraceParser {
 public:
  // Room for one request a line, but not more than real lines can need: a file of empty lines costs little.
  TraceParser(absl::string_view text, const ReadLimits& limits)
      : begin_(text.data()), end_(begin_ + text.size()), ids_(text.size()), requests_(limits.max_events) {
    requests_.Reserve(std::min(LinesOf(text), text.size() / 4) + 1);
  }

  absl::StatusOr<trace::RequestTrace> Run() {
    const char* at = begin_;
    PagesBehind behind(begin_);
    while (at < end_) {
      at = Line(at);
      if (at == nullptr) return error_;
      behind.ReadTo(at);
    }
    return requests_.Finish({.requests = {}, .id_count = ids_.count()});
  }

 private:
  const char* Line(const char* at) {
    at = SkipBlanks(at);
    if (at == end_) return at;
    const char letter = *at;
    if (letter == 'S' || letter == 'c' || letter == '#' || letter == '\n') return SkipLine(at);
    const bool stands_alone = at + 1 == end_ || EndsField(at[1]);
    if (!stands_alone) [[unlikely]]
      return UnknownLetter(at);
    const char* fields = at + 1;
    if (letter == 'a') return EndOfLine(Alloc(fields));
    if (letter == 'f') return EndOfLine(Free(fields));
    if (letter == 'r') return EndOfLine(RecordStream(fields));
    if (letter == 'y') return EndOfLine(Bare(OpKind::kDeviceSync, fields));
    if (letter == 'e') return EndOfLine(Bare(OpKind::kEmptyCache, fields));
    return UnknownLetter(at);
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE const char* Alloc(const char* at) {
    std::uint64_t id = 0, bytes = 0, stream = 0;
    const char* const id_at = at = SkipBlanks(at);
    if ((at = Number(at, "the id", &id)) == nullptr) return nullptr;
    const char* const bytes_at = at;
    if ((at = Number(at, "the number of bytes", &bytes)) == nullptr) return nullptr;
    if (bytes > kMaxBytes) [[unlikely]]
      return Fail(SkipBlanks(bytes_at), "the size is 2^63 or more; no device has that much");
    if ((at = Number(at, "the stream", &stream)) == nullptr) return nullptr;
    std::uint32_t& slot = ids_.Slot(id);
    if (slot & IdMap::kLive) [[unlikely]]
      return AllocatedTwice(id_at, id);
    if (slot == 0) slot = ids_.NextDense();
    requests_.Add(Op{bytes, Stream{stream}, slot - 1, OpKind::kAlloc});
    slot |= IdMap::kLive;
    return SkipAddress(at);
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE const char* Free(const char* at) {
    std::uint32_t* slot = nullptr;
    if ((at = LiveId(at, "freed", &slot)) == nullptr) return nullptr;
    *slot &= ~IdMap::kLive;
    requests_.Add(Op{0, Stream{}, *slot - 1, OpKind::kFree});
    return at;
  }

  const char* RecordStream(const char* at) {
    std::uint32_t* slot = nullptr;
    std::uint64_t stream = 0;
    if ((at = LiveId(at, "recorded on a stream", &slot)) == nullptr) return nullptr;
    if ((at = Number(at, "the stream", &stream)) == nullptr) return nullptr;
    requests_.Add(Op{0, Stream{stream}, (*slot & ~IdMap::kLive) - 1, OpKind::kRecordStream});
    return at;
  }

  const char* Bare(OpKind kind, const char* at) {
    requests_.Add(Op{0, Stream{}, 0, kind});
    return at;
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE const char* LiveId(const char* at, const char* what, std::uint32_t** slot) {
    std::uint64_t id = 0;
    const char* const id_at = at = SkipBlanks(at);
    if ((at = Number(at, "the id", &id)) == nullptr) return nullptr;
    *slot = &ids_.Slot(id);
    if ((**slot & IdMap::kLive) == 0) [[unlikely]]
      return NotLive(id_at, id, what, **slot == 0);
    return at;
  }

  // The next field as a decimal number.
  ABSL_ATTRIBUTE_ALWAYS_INLINE const char* Number(const char* at, const char* name, std::uint64_t* value) {
    const char* const start = SkipBlanks(at);
    at = start;
    const bool fits = ScanDecimal(&at, end_, value);
    if (fits && at != start && (at == end_ || EndsField(*at))) [[likely]]
      return at;
    return BadNumber(start, at, name, fits);
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE const char* EndOfLine(const char* at) {
    if (at == nullptr) return nullptr;
    at = SkipBlanks(at);
    if (at == end_) return at;
    if (*at == '\n') [[likely]]
      return at + 1;
    if (*at == '#') return SkipLine(at);
    return Trailing(at);
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE const char* SkipBlanks(const char* at) const {
    while (at < end_ && IsTraceBlank(*at)) ++at;
    return at;
  }
  const char* SkipAddress(const char* at) const {
    at = SkipBlanks(at);
    while (at < end_ && !EndsField(*at)) ++at;
    return at;
  }
  const char* SkipLine(const char* at) const {
    at = std::find(at, end_, '\n');
    return at < end_ ? at + 1 : at;
  }

  // --- messages ------------------------------------------------------------------------------------------------
  ABSL_ATTRIBUTE_NOINLINE const char* UnknownLetter(const char* at) {
    return Fail(at, absl::StrCat("unknown request '", Token(at), "'; a line starts with a, f, r, y or e"));
  }
  ABSL_ATTRIBUTE_NOINLINE const char* AllocatedTwice(const char* at, std::uint64_t id) {
    return Fail(at, absl::StrCat("id ", id, " is allocated again while live; free it first or use a new id"));
  }
  ABSL_ATTRIBUTE_NOINLINE const char* NotLive(const char* at, std::uint64_t id, const char* what, bool is_new) {
    const char* why = is_new ? " but was never allocated" : " after it was freed";
    return Fail(at, absl::StrCat("id ", id, " is ", what, why, "; remove the line or add the allocation"));
  }
  ABSL_ATTRIBUTE_NOINLINE const char* BadNumber(const char* start, const char* at, const char* name, bool fits) {
    if (!fits) return Fail(start, absl::StrCat(name, " does not fit 64 bits"));
    const bool is_missing = at == start && (at == end_ || *at == '\n' || *at == '#');
    if (is_missing) return Fail(at, absl::StrCat(name, " is missing"));
    return Fail(start, absl::StrCat(name, " must be a decimal number, not '", Token(start), "'"));
  }
  ABSL_ATTRIBUTE_NOINLINE const char* Trailing(const char* at) {
    return Fail(at, absl::StrCat("unexpected '", Token(at), "' after the last field"));
  }

  std::string Token(const char* at) const {
    const char* stop = at;
    while (stop < end_ && stop - at < 24 && !IsTraceBlank(*stop) && *stop != '\n') ++stop;
    return absl::CHexEscape(absl::string_view(at, static_cast<std::size_t>(stop - at)));
  }

  ABSL_ATTRIBUTE_NOINLINE const char* Fail(const char* at, absl::string_view what) {
    const auto line = std::count(begin_, at, '\n') + 1;
    const char* line_start = at;
    while (line_start > begin_ && line_start[-1] != '\n') --line_start;
    error_ = absl::InvalidArgumentError(absl::StrCat("trace ", line, ":", at - line_start + 1, ": ", what));
    return nullptr;
  }

  const char* begin_;
  const char* end_;
  IdMap ids_;
  trace::RequestWindow requests_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<trace::RequestTrace> ParsePlainTrace(absl::string_view text, const ReadLimits& limits) {
  if (text.size() / 2 >= IdMap::kLive) return absl::ResourceExhaustedError("trace: longer than 4 GiB; split it");
  return TraceParser(text, limits).Run();
}

namespace {
constexpr std::size_t kTracePieceBytes = 1 << 16;
}

PlainTraceLosses WritePlainTrace(const trace::RequestTrace& requests, ByteSink& out) {
  PlainTraceLosses lost;
  std::string piece;
  for (const trace::Op& request : requests.requests) {
    if (piece.size() >= kTracePieceBytes) {
      out.Append(piece);
      piece.clear();
    }
    switch (request.kind) {
      case trace::OpKind::kAlloc:
        if (!requests.pools[request.pool].IsDefault()) ++lost.pool_requests;
        absl::StrAppend(&piece, "a ", request.id, " ", request.bytes, " ", Handle(request.stream), "\n");
        break;
      case trace::OpKind::kFree:
        absl::StrAppend(&piece, "f ", request.id, "\n");
        break;
      case trace::OpKind::kRecordStream:
        absl::StrAppend(&piece, "r ", request.id, " ", Handle(request.stream), "\n");
        break;
      case trace::OpKind::kStreamSync:
        ++lost.stream_syncs;
        piece += "y\n";
        break;
      case trace::OpKind::kDeviceSync:
        piece += "y\n";
        break;
      case trace::OpKind::kEmptyCache:
        if (request.pool == 0) piece += "e\n";
        if (request.pool != 0) ++lost.pool_requests;
        break;
      case trace::OpKind::kTagPool:
      case trace::OpKind::kSleep:
      case trace::OpKind::kWake:
        ++lost.pool_requests;
        break;
    }
  }
  out.Append(piece);
  return lost;
}

}  // namespace ashlar::formats
