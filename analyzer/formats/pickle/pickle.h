// Reads a pickle of protocol 2 to 5 that holds plain data (dicts, lists, tuples, sets, numbers, texts). Nothing is
// ever executed: an opcode that would import or call something is refused by name and byte offset.
//
// Memory is bounded by a small multiple of the input: declared lengths are checked against the bytes that are left
// before anything is allocated, and a shared reference costs one value however large what it refers to.
//
//   absl::StatusOr<pickle::Document> document = pickle::Read(bytes);   // `bytes` must outlive the document
#ifndef ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_H_
#define ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analyzer/formats/pickle/pickle_document.h"
#include "analyzer/formats/pickle/pickle_memo.h"
#include "analyzer/formats/pickle/pickle_opcodes.h"

namespace ashlar::formats::pickle {

// An item of a streamed list as the opcodes that it is written with, for a sink that reads it without the machine
//: a cursor, and what the item puts into the memo. Whatever a pickler does not usually write is left
// to the machine, so a reader of it may give up at any opcode: nothing has changed until it is through.
//
//   item.Begin(at);
//   ++item.at;                                          // EMPTY_DICT
//   if (!item.Remember(Kind::kDict, at)) return false;  // MEMOIZE, or another put, or none

static_assert(std::endian::native == std::endian::little);

// What is known of an empty container: nothing more is needed. PyTorch shares one list for all events without frames.
constexpr std::uint64_t KnownEmpty(Kind kind) { return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(kind); }

class DirectItem {
 public:
  // A get and a number, each with the put after it, have no more bytes.
  static constexpr std::ptrdiff_t kOpcodeBytes = 32;
  static constexpr std::size_t kMostPuts = 16;

  struct Put {
    std::uint64_t index = 0;
    std::uint64_t offset = 0;  // where the value was made
    Kind kind = Kind::kNone;
    absl::string_view text = {};  // of kString
    std::uint64_t known = 0;      // of a container: ItemSink::Known of it, or KnownEmpty; 0: it is forgotten
  };

  DirectItem(const std::uint8_t* input, const std::uint8_t* input_end, const Memo& read)
      : memo(read), end(input_end), input_(input) {}

  void Begin(const std::uint8_t* item) {
    begin = at = item;
    put_count = 0;
    next_index_ = 0;
  }

  bool HasRoom(std::ptrdiff_t bytes = kOpcodeBytes) const { return end - at >= bytes; }
  std::uint64_t OffsetOf(const std::uint8_t* opcode) const { return static_cast<std::uint64_t>(opcode - input_); }
  static std::uint32_t U32(const std::uint8_t* bytes) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  }

  // Goes past the beginning of a frame of the pickle, which protocol 4 puts between any two values.
  bool PassFrame() {
    if (at == end || *at != kFrame) [[likely]]
      return true;
    std::uint64_t bytes = 0;
    if (end - at < 9) return false;
    std::memcpy(&bytes, at + 1, sizeof(bytes));
    at += 9;
    return bytes <= static_cast<std::uint64_t>(end - at);
  }

  // Goes past a get; nullptr: there is none, or what it gets is not there. Wants HasRoom.
  const Value* Get() {
    const bool is_long = *at == kLongBinGet;
    if (!is_long && *at != kBinGet) return nullptr;
    const Value* const value = memo.Get(is_long ? U32(at + 1) : at[1]);
    at += is_long ? 5 : 2;
    return value;
  }

  // Goes past an integer of 64 bits with a sign. Wants HasRoom.
  bool Integer(std::int64_t* out) {
    switch (*at) {
      case kBinInt1:
        *out = at[1];
        at += 2;
        return true;
      case kBinInt2:
        *out = at[1] | at[2] << 8;
        at += 3;
        return true;
      case kBinInt:
        *out = static_cast<std::int32_t>(U32(at + 1));
        at += 5;
        return true;
      case kLong1:
        return Long(out);
      default:
        return false;
    }
  }

  // Goes past the put of the value that was made there, where one follows. Wants HasRoom.
  bool Remember(Kind kind, const std::uint8_t* made_at, absl::string_view text = {}) {
    std::uint64_t index = 0;
    const std::uint8_t* const put = at;
    if (*at == kMemoize) {
      index = memo.written() + put_count;
      at += 1;
    } else if (*at == kBinPut) {
      index = at[1];
      at += 2;
    } else if (*at == kLongBinPut) {
      index = U32(at + 1);
      at += 5;
    } else {
      return true;
    }
    // A pickler counts up. The machine knows what else may be.
    const bool is_usual = put_count < kMostPuts && index >= next_index_ && index <= OffsetOf(put);
    if (!is_usual || memo.At(index) != Memo::kUnwritten) return false;
    next_index_ = index + 1;
    puts[put_count++] = {index, OffsetOf(made_at), kind, text, 0};
    return true;
  }

  const Memo& memo;
  const std::uint8_t* begin = nullptr;  // of the item
  const std::uint8_t* at = nullptr;
  const std::uint8_t* const end;
  std::array<Put, kMostPuts> puts;
  std::size_t put_count = 0;

 private:
  bool Long(std::int64_t* out) {
    const unsigned bytes = at[1];
    if (bytes == 0 || bytes > 8) return false;
    std::uint64_t value = 0;
    std::memcpy(&value, at + 2, sizeof(value));
    const unsigned unused = 64 - 8 * bytes;
    *out = static_cast<std::int64_t>(value << unused) >> unused;
    at += 2 + bytes;
    return true;
  }

  const std::uint8_t* const input_;
  std::uint64_t next_index_ = 0;
};

struct PickleLimits {
  std::uint64_t max_values = std::uint64_t{1} << 30;  // items, texts, containers and memo entries, at most 2^31
};

// InvalidArgument: not such a pickle (code, unknown opcode, broken structure); DataLoss: truncated;
// ResourceExhausted: over the limits. Each names the byte offset.
absl::StatusOr<Document> Read(absl::string_view bytes, const PickleLimits& limits = {});

// Reads a pickle as pickle.h does, but for the lists of one list, which are long: their items are handed out as they
// are appended and dropped at once, so that a file of any length takes the memory of what is not in them.
//
//   {'segments': [...], 'device_traces': [[entry, entry, ...], [...]], ...}
//                                          └─ handed out ─┘
//
// What an item shares with later ones stays reachable: texts, and containers of which the sink says that it knows them.
// A file that refers back to anything else of an item that is gone, or is written in another order, is legal and nobody
// writes it: ReadStreamed says Aborted, and the caller reads it whole.
//
//   absl::Status status = ReadStreamed(bytes, limits, "device_traces", sink, document);
class ItemSink {
 public:
  virtual ~ItemSink() = default;

  // The next items of the list with that number, in the order in which lists begin to have items. The items are dicts.
  // False: it cannot take them; the reading ends with Aborted.
  virtual bool Take(std::uint64_t list, const Value* begin, const Value* end) = 0;

  // An item that is not read yet, from its opcodes: Decode goes past it, and TakeDecoded takes it as the next of the
  // list, whose container that is, and says what is known of the containers that it puts into the memo. False of
  // Decode: the machine is to read it, and nothing has changed.
  virtual bool Decode(DirectItem&) { return false; }
  virtual bool TakeDecoded(std::uint64_t, std::uint64_t, DirectItem&) { return false; }

  // A number for a container that it knows what it needs of, else 0; equal numbers are equal for all that follows.
  virtual std::uint64_t Known(const Value& container) const = 0;
  // The items that were taken are gone, and with them all containers and texts from these numbers on.
  virtual void CutBack(const Document::Place& to) = 0;
  // A new container without items stands for the one that was known by that number.
  virtual void Rename(std::uint64_t known, std::uint64_t container) = 0;
};

// A list that was handed out has IsStreamedList in the document. Aborted as above; else the errors of Read.
absl::Status ReadStreamed(absl::string_view bytes, const PickleLimits& limits, absl::string_view key, ItemSink& sink,
                          Document& document);

}  // namespace ashlar::formats::pickle

#endif  // ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_H_
