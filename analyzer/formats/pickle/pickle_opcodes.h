// The pickle opcodes, as far as a message or a dispatch must name them.
// Source of the numbers: CPython's Lib/pickletools.py (the format's public definition).
#ifndef ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_OPCODES_H_
#define ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_OPCODES_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace ashlar::formats::pickle {

enum Opcode : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinFloat = 'G',
  kIntText = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// The name of an opcode that would import or call something, or leave the file; empty for all others.
absl::string_view CodeRunningOpcodeName(std::uint8_t opcode);

// The name of a text opcode of protocols 0 and 1, or of an out-of-band buffer, which plain data never needs; empty
// for all others.
absl::string_view UnsupportedOpcodeName(std::uint8_t opcode);

}  // namespace ashlar::formats::pickle

#endif  // ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_OPCODES_H_
