#include "analyzer/formats/pickle/pickle_writer.h"

#include <bit>
#include <limits>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "analyzer/formats/pickle/pickle_opcodes.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats::pickle {
namespace {
constexpr std::size_t kPieceBytes = 1 << 16;
}

PickleWriter::PickleWriter(ByteSink& sink) : sink_(sink) {
  Byte(kProto);
  Byte(4);
}

void PickleWriter::BeginDict() {
  Byte(kEmptyDict);
  Byte(kMark);
}

void PickleWriter::EndDict() {
  Byte(kSetItems);
  if (bytes_.size() >= kPieceBytes) Pass();
}

void PickleWriter::Pass() {
  sink_.Append(bytes_);
  bytes_.clear();
}

void PickleWriter::BeginList() {
  Byte(kEmptyList);
  Byte(kMark);
}

void PickleWriter::EndList() { Byte(kAppends); }

void PickleWriter::Pair(std::uint64_t first, std::uint64_t second) {
  Unsigned(first);
  Unsigned(second);
  Byte(kTuple2);
}

void PickleWriter::Signed(std::int64_t value) {
  if (value >= 0) return Unsigned(static_cast<std::uint64_t>(value));
  if (value < std::numeric_limits<std::int32_t>::min()) return Long(static_cast<std::uint64_t>(value), true);
  Byte(kBinInt);
  LittleEndian(static_cast<std::uint64_t>(value), 4);
}

void PickleWriter::Unsigned(std::uint64_t value) {
  if (value <= 0xff) {
    Byte(kBinInt1);
    LittleEndian(value, 1);
  } else if (value <= 0xffff) {
    Byte(kBinInt2);
    LittleEndian(value, 2);
  } else if (value <= 0x7fffffff) {
    Byte(kBinInt);
    LittleEndian(value, 4);
  } else {
    Long(value, false);
  }
}

// The fewest bytes of two's complement whose top bit is the sign.
void PickleWriter::Long(std::uint64_t value, bool negative) {
  const std::uint64_t magnitude = negative ? ~value : value;
  const int bytes = static_cast<int>(std::bit_width(magnitude)) / 8 + 1;
  Byte(kLong1);
  LittleEndian(static_cast<std::uint64_t>(bytes), 1);
  LittleEndian(value, bytes > 8 ? 8 : bytes);
  if (bytes > 8) Byte(0);
}

void PickleWriter::Bool(bool value) { Byte(value ? kNewTrue : kNewFalse); }

void PickleWriter::Float(double value) {
  Byte(kBinFloat);
  const auto bits = absl::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) Byte(bits >> shift & 0xff);
}

void PickleWriter::None() { Byte(kNone); }

void PickleWriter::Text(absl::string_view text) {
  if (const auto known = texts_.find(text); known != texts_.end()) return Refer(known->second);
  texts_.emplace(text, memo_count_);
  const std::string valid = IsUtf8(text) ? std::string(text) : ToUtf8(text);
  if (valid.size() <= 0xff) {
    Byte(kShortBinUnicode);
    LittleEndian(valid.size(), 1);
  } else if (valid.size() <= 0xffffffff) {
    Byte(kBinUnicode);
    LittleEndian(valid.size(), 4);
  } else {
    Byte(kBinUnicode8);
    LittleEndian(valid.size(), 8);
  }
  absl::StrAppend(&bytes_, valid);
  Remember();
}

MemoIndex PickleWriter::Remember() {
  Byte(kMemoize);
  return memo_count_++;
}

void PickleWriter::Refer(MemoIndex index) {
  Byte(index <= 0xff ? kBinGet : kLongBinGet);
  LittleEndian(index, index <= 0xff ? 1 : 4);
}

void PickleWriter::Finish() {
  Byte(kStop);
  Pass();
}

void PickleWriter::LittleEndian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) Byte(value >> (8 * i) & 0xff);
}

}  // namespace ashlar::formats::pickle
