#include "analyzer/formats/pickle/pickle_opcodes.h"

namespace ashlar::formats::pickle {

absl::string_view CodeRunningOpcodeName(std::uint8_t opcode) {
  switch (opcode) {
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'c':
      return "GLOBAL";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x93:
      return "STACK_GLOBAL";
    default:
      return "";
  }
}

absl::string_view UnsupportedOpcodeName(std::uint8_t opcode) {
  switch (opcode) {
    case 'F':
      return "FLOAT";
    case 'L':
      return "LONG";
    case 'S':
      return "STRING";
    case 'V':
      return "UNICODE";
    case 'g':
      return "GET";
    case 'p':
      return "PUT";
    case 0x96:
      return "BYTEARRAY8";
    case 0x97:
      return "NEXT_BUFFER";
    case 0x98:
      return "READONLY_BUFFER";
    default:
      return "";
  }
}

}  // namespace ashlar::formats::pickle
