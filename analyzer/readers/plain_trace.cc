#include "analyzer/readers/plain_trace.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace ashlar::readers {
namespace {

using trace::Request;
using trace::RequestKind;

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

// From file ids to dense ids, with whether the id is live. Small ids (nearly all, in nearly all files) index a
// table, the rest hash.
class IdMap {
 public:
  explicit IdMap(std::size_t text_bytes) : table_limit_(text_bytes / 4 + 1024) {}

  // The slot of an id: 0 = never seen, else the dense id + 1, with kLive set while allocated.
  std::uint32_t& Slot(std::uint64_t id) {
    if (id < table_.size()) [[likely]]
      return table_[id];
    return SlotOfNew(id);
  }
  std::uint32_t NextDense() { return ++count_; }
  std::uint32_t count() const { return count_; }

  static constexpr std::uint32_t kLive = std::uint32_t{1} << 31;

 private:
  std::uint32_t& SlotOfNew(std::uint64_t id) {
    if (id >= table_limit_) return sparse_[id];
    table_.resize(std::min<std::size_t>(table_limit_, std::max<std::size_t>(id + 1, 2 * table_.size() + 1024)));
    return table_[id];
  }

  std::size_t table_limit_;
  std::vector<std::uint32_t> table_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> sparse_;
  std::uint32_t count_ = 0;
};

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// A scanner over the text; a failed step records where and why and returns false.
class Parser {
 public:
  // Room for one request a line, but not more than real lines can need: a file of empty lines costs little.
  explicit Parser(absl::string_view text)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), ids_(text.size()) {
    const auto lines = static_cast<std::size_t>(std::count(begin_, end_, '\n'));
    requests_.reserve(std::min(lines, text.size() / 4) + 1);
  }

  absl::StatusOr<trace::RequestTrace> Run() {
    while (at_ < end_) {
      if (!Line()) return error_;
    }
    return trace::RequestTrace{std::move(requests_), ids_.count()};
  }

 private:
  bool Line() {
    SkipBlanks();
    if (at_ == end_) return true;
    switch (*at_) {
      case 'a':
        return Op() && Alloc() && EndOfLine();
      case 'f':
        return Op() && Free() && EndOfLine();
      case 'r':
        return Op() && RecordStream() && EndOfLine();
      case 'y':
        return Op() && Bare(RequestKind::kDeviceSync) && EndOfLine();
      case 'e':
        return Op() && Bare(RequestKind::kEmptyCache) && EndOfLine();
      case 'S':
      case 'c':
      case '#':
      case '\n':
        return SkipLine();
      default:
        return UnknownLetter();
    }
  }

  // Steps over the letter, which stands alone.
  bool Op() {
    ++at_;
    if (at_ == end_ || IsBlank(*at_) || *at_ == '\n') return true;
    --at_;
    return UnknownLetter();
  }

  bool Alloc() {
    std::uint64_t id = 0, bytes = 0, stream = 0;
    if (!Field("the id", &id)) return false;
    const char* const id_at = field_;
    if (!Field("the number of bytes", &bytes)) return false;
    if (bytes > kMaxBytes) return Fail(field_, "the size is 2^63 or more; no device has that much");
    if (!Field("the stream", &stream)) return false;
    SkipToken();
    std::uint32_t& slot = ids_.Slot(id);
    if (slot & IdMap::kLive) {
      return Fail(id_at, absl::StrCat("id ", id, " is allocated again while live; free it first or use a new id"));
    }
    if (slot == 0) slot = ids_.NextDense();
    Add(RequestKind::kAlloc, bytes, stream, slot - 1);
    slot |= IdMap::kLive;
    return true;
  }

  bool Free() {
    std::uint32_t* slot = nullptr;
    if (!LiveId(&slot, "freed")) return false;
    *slot &= ~IdMap::kLive;
    Add(RequestKind::kFree, 0, 0, *slot - 1);
    return true;
  }

  bool RecordStream() {
    std::uint32_t* slot = nullptr;
    std::uint64_t stream = 0;
    if (!LiveId(&slot, "recorded on a stream") || !Field("the stream", &stream)) return false;
    Add(RequestKind::kRecordStream, 0, stream, (*slot & ~IdMap::kLive) - 1);
    return true;
  }

  bool Bare(RequestKind kind) {
    Add(kind, 0, 0, 0);
    return true;
  }

  bool LiveId(std::uint32_t** slot, absl::string_view what) {
    std::uint64_t id = 0;
    if (!Field("the id", &id)) return false;
    *slot = &ids_.Slot(id);
    if (**slot & IdMap::kLive) [[likely]]
      return true;
    const absl::string_view why = **slot == 0 ? " but was never allocated" : " after it was freed";
    return Fail(field_, absl::StrCat("id ", id, " is ", what, why, "; remove the line or add the allocation"));
  }

  // The next field as a decimal number; field_ is where it starts.
  bool Field(absl::string_view name, std::uint64_t* value) {
    SkipBlanks();
    field_ = at_;
    std::uint64_t v = 0;
    while (at_ < end_) {
      const unsigned digit = static_cast<unsigned char>(*at_) - unsigned{'0'};
      if (digit > 9) break;
      if (v > (kMaxU64 - digit) / 10) [[unlikely]]
        return Fail(field_, absl::StrCat(name, " does not fit 64 bits"));
      v = v * 10 + digit;
      ++at_;
    }
    const bool ends_well = at_ == end_ || IsBlank(*at_) || *at_ == '\n' || *at_ == '#';
    if (at_ == field_ || !ends_well) [[unlikely]]
      return NotANumber(name);
    *value = v;
    return true;
  }

  bool NotANumber(absl::string_view name) {
    if (at_ == end_ || *at_ == '\n' || *at_ == '#') return Fail(at_, absl::StrCat(name, " is missing"));
    return Fail(field_, absl::StrCat(name, " must be a decimal number, not '", Token(field_), "'"));
  }

  bool UnknownLetter() {
    return Fail(at_, absl::StrCat("unknown request '", Token(at_), "'; a line starts with a, f, r, y or e"));
  }

  bool EndOfLine() {
    SkipBlanks();
    if (at_ == end_) return true;
    if (*at_ == '\n') {
      ++at_;
      return true;
    }
    if (*at_ == '#') return SkipLine();
    return Fail(at_, absl::StrCat("unexpected '", Token(at_), "' after the last field"));
  }

  void SkipBlanks() {
    while (at_ < end_ && IsBlank(*at_)) ++at_;
  }
  void SkipToken() {
    SkipBlanks();
    if (at_ < end_ && *at_ == '#') return;
    while (at_ < end_ && !IsBlank(*at_) && *at_ != '\n') ++at_;
  }
  bool SkipLine() {
    at_ = std::find(at_, end_, '\n');
    if (at_ < end_) ++at_;
    return true;
  }

  void Add(RequestKind kind, std::uint64_t bytes, std::uint64_t stream, std::uint32_t id) {
    requests_.push_back(Request{bytes, Stream{stream}, id, kind});
  }

  std::string Token(const char* at) const {
    const char* stop = at;
    while (stop < end_ && stop - at < 24 && !IsBlank(*stop) && *stop != '\n') ++stop;
    return absl::CHexEscape(absl::string_view(at, static_cast<std::size_t>(stop - at)));
  }

  bool Fail(const char* at, absl::string_view what) {
    const auto line = std::count(begin_, at, '\n') + 1;
    const char* line_start = at;
    while (line_start > begin_ && line_start[-1] != '\n') --line_start;
    error_ = absl::InvalidArgumentError(absl::StrCat("trace ", line, ":", at - line_start + 1, ": ", what));
    return false;
  }

  static constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* field_ = nullptr;
  IdMap ids_;
  std::vector<Request> requests_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<trace::RequestTrace> ParsePlainTrace(absl::string_view text) {
  if (text.size() / 2 >= IdMap::kLive) return absl::ResourceExhaustedError("trace: longer than 4 GiB; split it");
  return Parser(text).Run();
}

}  // namespace ashlar::readers
