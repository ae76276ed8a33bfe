// The headers of a recording's file and of its chunks, numbered in the order they are asked for.
#ifndef ASHLAR_ALLOCATOR_TRACE_CHUNK_BYTES_H_
#define ASHLAR_ALLOCATOR_TRACE_CHUNK_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "allocator/trace/codec_format.h"

namespace ashlar::trace::codec {

class ChunkBytes {
 public:
  static std::string FileHeader() { return AsText(MakeFileHeader()); }
  // Of the next chunk.
  std::string HeaderOf(absl::string_view payload) { return AsText(MakeChunkHeader(next_++, payload)); }

 private:
  template <typename Header>
  static std::string AsText(const Header& header) {
    return {reinterpret_cast<const char*>(&header), sizeof(header)};
  }

  std::uint64_t next_ = 0;
};

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_CHUNK_BYTES_H_
