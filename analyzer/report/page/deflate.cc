#include "analyzer/report/page/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "allocator/base/check.h"

namespace ashlar::report {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header
constexpr int kMemoryLevel = 8;       // zlib's usual
constexpr std::size_t kChunk = 256 * 1024;

}  // namespace

std::string Deflate(absl::string_view bytes) {
  z_stream stream{};
  ASHLAR_CHECK(
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const std::size_t taken = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(taken);
      bytes.remove_prefix(taken);
    }
    const std::size_t written = out.size();
    out.resize(written + kChunk);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(kChunk);
    state = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    ASHLAR_CHECK(state != Z_STREAM_ERROR);
    out.resize(written + kChunk - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace ashlar::report
