// Writes plain data as a pickle of protocol 4 with the opcodes that PyTorch's memory viewer understands. The caller
// writes values in order, as a tree:
//
//   PickleWriter out(sink);
//   out.BeginDict();
//   out.Text("segments");
//   out.BeginList();
//   out.EndList();
//   out.EndDict();
//   out.Finish();
//
// Equal texts are written once and referred to from then on; a byte that is no UTF-8, which Python could not load, is
// '?'. The bytes go to the sink in pieces.
#ifndef ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_WRITER_H_
#define ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "allocator/base/byte_sink.h"

namespace ashlar::formats::pickle {

// An object already written, to be referred to.
using MemoIndex = std::uint32_t;

class PickleWriter {
 public:
  explicit PickleWriter(ByteSink& sink);

  void BeginDict();  // then key, value, key, value, ...
  void EndDict();
  void BeginList();
  void EndList();
  void Pair(std::uint64_t first, std::uint64_t second);  // a tuple of two numbers

  void Signed(std::int64_t value);
  void Unsigned(std::uint64_t value);
  void Bool(bool value);
  void Float(double value);
  void None();
  void Text(absl::string_view text);

  // Remembers the value just ended; Refer writes it again as a reference.
  MemoIndex Remember();
  void Refer(MemoIndex index);

  // Once, at the end.
  void Finish();

 private:
  void Byte(unsigned value) { bytes_.push_back(static_cast<char>(value)); }
  void Pass();
  void LittleEndian(std::uint64_t value, int bytes);
  void Long(std::uint64_t value, bool negative);

  ByteSink& sink_;
  std::string bytes_;  // not yet passed on
  absl::flat_hash_map<std::string, MemoIndex> texts_;
  MemoIndex memo_count_ = 0;
};

}  // namespace ashlar::formats::pickle

#endif  // ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_WRITER_H_
