#include "analyzer/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::readers {
namespace {

constexpr std::size_t kFirstOutputBytes = 64 * 1024;
constexpr int kGzipOnly = 16 + MAX_WBITS;

// One zlib stream over the whole input; zlib counts in 32 bits, so input and output are fed in slices.
class Inflater {
 public:
  Inflater(absl::string_view input, std::uint64_t max_output_bytes) : input_(input), limit_(max_output_bytes) {}
  ~Inflater() {
    if (is_open_) inflateEnd(&stream_);
  }

  absl::StatusOr<std::string> Run() {
    if (absl::Status status = Open(); !status.ok()) return status;
    while (!done_) {
      if (absl::Status status = Step(); !status.ok()) return status;
    }
    output_.resize(written_);
    return std::move(output_);
  }

  absl::Status RunTo(absl::FunctionRef<bool(absl::string_view part)> take) {
    if (absl::Status status = Open(); !status.ok()) return status;
    output_.resize(kPartBytes);
    while (!done_) {
      if (absl::Status status = Step(); !status.ok()) return status;
      total_ += written_;
      if (total_ > limit_) return TooLarge();
      if (!take({output_.data(), written_})) return absl::AbortedError("gzip: the output is not taken");
      written_ = 0;
    }
    return absl::OkStatus();
  }

 private:
  static constexpr std::size_t kPartBytes = 1024 * 1024;

  absl::Status Open() {
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) return absl::ResourceExhaustedError("gzip: zlib did not start");
    is_open_ = true;
    return absl::OkStatus();
  }

  absl::Status Step() {
    if (written_ == output_.size()) {
      if (absl::Status status = Grow(); !status.ok()) return status;
    }
    const std::size_t in = Slice(input_.size() - read_);
    const std::size_t out = Slice(output_.size() - written_);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data() + read_));
    stream_.avail_in = static_cast<uInt>(in);
    stream_.next_out = reinterpret_cast<Bytef*>(output_.data() + written_);
    stream_.avail_out = static_cast<uInt>(out);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    read_ += in - stream_.avail_in;
    written_ += out - stream_.avail_out;
    return Judge(code, stream_.avail_out != 0);
  }

  absl::Status Judge(int code, bool has_room) {
    if (code == Z_STREAM_END) return NextMember();
    if (code == Z_OK && (read_ < input_.size() || !has_room)) return absl::OkStatus();
    if (code == Z_OK || code == Z_BUF_ERROR) {
      if (read_ < input_.size() || !has_room) return absl::OkStatus();
      return absl::DataLossError(absl::StrCat("gzip: the input ends inside a member at byte ", read_,
                                              ": the file is truncated, fetch it again"));
    }
    return absl::DataLossError(absl::StrCat("gzip: damaged data near byte ", read_, " (",
                                            stream_.msg == nullptr ? "no reason given" : stream_.msg, ")"));
  }

  // Zero bytes after a member are padding, as gzip itself takes them.
  absl::Status NextMember() {
    const std::size_t next = input_.find_first_not_of('\0', read_);
    done_ = next == absl::string_view::npos;
    if (done_) return absl::OkStatus();
    read_ = next;
    if (!LooksLikeGzip(input_.substr(read_))) {
      return absl::DataLossError(absl::StrCat("gzip: what follows the last member at byte ", read_, " is not gzip"));
    }
    inflateReset(&stream_);
    return absl::OkStatus();
  }

  // One byte more than the limit is allowed as room, so that an output of exactly the limit can end.
  absl::Status Grow() {
    if (written_ > limit_) return TooLarge();
    const std::uint64_t twice = std::max<std::uint64_t>(kFirstOutputBytes, 2 * std::uint64_t{output_.size()});
    output_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(twice, limit_ + 1)));
    return absl::OkStatus();
  }

  absl::Status TooLarge() const {
    return absl::ResourceExhaustedError(absl::StrCat("gzip: unpacks to more than the limit of ", FormatBytes(limit_),
                                                     " (at byte ", read_, " of the compressed file)"));
  }

  static std::size_t Slice(std::size_t bytes) { return std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()); }

  absl::string_view input_;
  std::uint64_t limit_;
  z_stream stream_{};
  std::string output_;
  std::size_t read_ = 0;
  std::size_t written_ = 0;
  std::uint64_t total_ = 0;  // that were taken
  bool is_open_ = false;
  bool done_ = false;
};

}  // namespace

bool LooksLikeGzip(absl::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

absl::Status GunzipTo(absl::string_view bytes, std::uint64_t max_output_bytes,
                      absl::FunctionRef<bool(absl::string_view part)> take) {
  return Inflater(bytes, std::min<std::uint64_t>(max_output_bytes, std::numeric_limits<std::int64_t>::max() / 4))
      .RunTo(take);
}

absl::StatusOr<std::string> Gunzip(absl::string_view bytes, std::uint64_t max_output_bytes) {
  max_output_bytes = std::min<std::uint64_t>(max_output_bytes, std::numeric_limits<std::int64_t>::max() / 4);
  absl::StatusOr<std::string> output = Inflater(bytes, max_output_bytes).Run();
  if (output.ok() && output->size() > max_output_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("gzip: unpacks to more than the limit of ", FormatBytes(max_output_bytes)));
  }
  return output;
}

}  // namespace ashlar::readers
