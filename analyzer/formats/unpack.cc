#include "analyzer/formats/unpack.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "analyzer/formats/system_library.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

constexpr std::size_t kPartBytes = 1024 * 1024;

// What is left of an input, and of the room for an output.
struct Packed {
  absl::string_view all;
  std::size_t read = 0;

  std::size_t left() const { return all.size() - read; }
};
struct Room {
  char* begin = nullptr;
  std::size_t bytes = 0;
  std::size_t written = 0;

  std::size_t left() const { return bytes - written; }
};

class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;
  // Goes on from `in` to `out` as far as it comes; true: the end.
  virtual absl::StatusOr<bool> Step(Packed& in, Room& out) = 0;
};

absl::Status Damaged(absl::string_view name, std::size_t at, absl::string_view reason) {
  return absl::DataLossError(absl::StrCat(name, ": damaged data near byte ", at, " (", reason, ")"));
}

// zlib counts in 32 bits, so that input and output are fed in slices.
uInt Slice(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

bool IsGzip(absl::string_view bytes) { return absl::StartsWith(bytes, "\x1f\x8b"); }

// Deflated data: the members of a gzip file, or one member of a zip file.
class Inflater final : public StreamDecoder {
 public:
  Inflater(absl::string_view name, int window_bits)
      : name_(name), is_open_(inflateInit2(&stream_, window_bits) == Z_OK) {}
  ~Inflater() override {
    if (is_open_) inflateEnd(&stream_);
  }

  absl::StatusOr<bool> Step(Packed& in, Room& out) override {
    if (!is_open_) return absl::ResourceExhaustedError(absl::StrCat(name_, ": zlib did not start"));
    const uInt in_bytes = Slice(in.left()), out_bytes = Slice(out.left());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.all.data() + in.read));
    stream_.avail_in = in_bytes;
    stream_.next_out = reinterpret_cast<Bytef*>(out.begin + out.written);
    stream_.avail_out = out_bytes;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    in.read += in_bytes - stream_.avail_in;
    out.written += out_bytes - stream_.avail_out;
    if (code == Z_STREAM_END) return IsLastMember(in);
    if (code == Z_OK || code == Z_BUF_ERROR) return false;
    return Damaged(name_, in.read, stream_.msg == nullptr ? "no reason given" : stream_.msg);
  }

 private:
  // Zero bytes after a member are padding, as gzip itself takes them.
  absl::StatusOr<bool> IsLastMember(Packed& in) {
    const std::size_t next = in.all.find_first_not_of('\0', in.read);
    if (next == absl::string_view::npos) return true;
    in.read = next;
    if (!IsGzip(in.all.substr(in.read))) {
      return absl::DataLossError(
          absl::StrCat(name_, ": what follows the last member at byte ", in.read, " is not ", name_));
    }
    inflateReset(&stream_);
    return false;
  }

  absl::string_view name_;
  z_stream stream_{};
  bool is_open_;
};

absl::Status NotHere(const char* library, const char* package, const char* command) {
  return absl::UnavailableError(absl::StrCat(library, " is not here: install it (Debian, Ubuntu: apt-get install ",
                                             package, "), or unpack the file first: ", command));
}

// As lzma.h declares them; the layout of the stream is part of liblzma.so.5's interface:
// https://github.com/tukaani-project/xz/blob/v5.4.1/src/liblzma/api/lzma/base.h
struct LzmaStream {
  const unsigned char* next_in;
  std::size_t avail_in;
  std::uint64_t total_in;
  unsigned char* next_out;
  std::size_t avail_out;
  std::uint64_t total_out;
  const void* allocator;
  void* internal;
  void* reserved_pointers[4];
  std::uint64_t seek_position, reserved_number;
  std::size_t reserved_sizes[2];
  int reserved_enums[2];
};

struct Lzma {
  int (*decoder)(LzmaStream*, std::uint64_t memory_limit, std::uint32_t flags);
  int (*code)(LzmaStream*, int action);
  void (*end)(LzmaStream*);

  static const Lzma* Load() {
    static const std::optional<Lzma> loaded = [] {
      Lzma out{};
      const SystemLibrary library("liblzma.so.5");
      const bool has_all = library.Find("lzma_stream_decoder", out.decoder) && library.Find("lzma_code", out.code) &&
                           library.Find("lzma_end", out.end);
      return has_all ? std::optional(out) : std::nullopt;
    }();
    return loaded.has_value() ? &*loaded : nullptr;
  }
};

class XzDecoder final : public StreamDecoder {
 public:
  ~XzDecoder() override {
    if (is_open_) lzma_->end(&stream_);
  }

  absl::StatusOr<bool> Step(Packed& in, Room& out) override {
    if (lzma_ == nullptr) return NotHere("liblzma.so.5", "liblzma5", "xz -d FILE");
    if (!is_open_ && lzma_->decoder(&stream_, kMostMemory, kConcatenated) != kOk) {
      return absl::ResourceExhaustedError("xz: liblzma did not start");
    }
    is_open_ = true;
    const std::size_t in_bytes = in.left(), out_bytes = out.left();
    stream_.next_in = reinterpret_cast<const unsigned char*>(in.all.data() + in.read);
    stream_.avail_in = in_bytes;
    stream_.next_out = reinterpret_cast<unsigned char*>(out.begin + out.written);
    stream_.avail_out = out_bytes;
    const int code = lzma_->code(&stream_, kFinish);  // all of the input is there
    in.read += in_bytes - stream_.avail_in;
    out.written += out_bytes - stream_.avail_out;
    if (code == kStreamEnd) return true;
    if (code == kOk || code == kBufferError) return false;
    if (code == kMemoryError || code == kMemoryLimit) {
      return absl::ResourceExhaustedError("xz: unpacking it takes more than 1 GiB of memory");
    }
    return Damaged("xz", in.read, absl::StrCat("liblzma's error ", code));
  }

 private:
  static constexpr std::uint64_t kMostMemory = kGiB;
  static constexpr std::uint32_t kConcatenated = 0x08;
  static constexpr int kFinish = 3;
  enum Code { kOk = 0, kStreamEnd = 1, kMemoryError = 5, kMemoryLimit = 6, kBufferError = 10 };

  const Lzma* lzma_ = Lzma::Load();
  LzmaStream stream_{};
  bool is_open_ = false;
};

// As zstd.h declares them: https://facebook.github.io/zstd/zstd_manual.html
struct Zstd {
  struct In {
    const void* begin;
    std::size_t bytes, at;
  };
  struct Out {
    void* begin;
    std::size_t bytes, at;
  };
  void* (*create)();
  std::size_t (*release)(void*);
  std::size_t (*decompress)(void*, Out*, In*);
  unsigned (*is_error)(std::size_t);
  const char* (*error_name)(std::size_t);

  static const Zstd* Load() {
    static const std::optional<Zstd> loaded = [] {
      Zstd out{};
      const SystemLibrary library("libzstd.so.1");
      const bool has_all =
          library.Find("ZSTD_createDStream", out.create) && library.Find("ZSTD_freeDStream", out.release) &&
          library.Find("ZSTD_decompressStream", out.decompress) && library.Find("ZSTD_isError", out.is_error) &&
          library.Find("ZSTD_getErrorName", out.error_name);
      return has_all ? std::optional(out) : std::nullopt;
    }();
    return loaded.has_value() ? &*loaded : nullptr;
  }
};

class ZstdDecoder final : public StreamDecoder {
 public:
  ~ZstdDecoder() override {
    if (stream_ != nullptr) zstd_->release(stream_);
  }

  absl::StatusOr<bool> Step(Packed& in, Room& out) override {
    if (zstd_ == nullptr) return NotHere("libzstd.so.1", "libzstd1", "zstd -d FILE");
    if (stream_ == nullptr) stream_ = zstd_->create();
    if (stream_ == nullptr) return absl::ResourceExhaustedError("zstd: it did not start");
    Zstd::In from{in.all.data(), in.all.size(), in.read};
    Zstd::Out to{out.begin, out.bytes, out.written};
    const std::size_t code = zstd_->decompress(stream_, &to, &from);
    in.read = from.at;
    out.written = to.at;
    if (zstd_->is_error(code) != 0) return Damaged("zstd", in.read, zstd_->error_name(code));
    return code == 0 && in.left() == 0;  // a frame is whole; others may follow
  }

 private:
  const Zstd* zstd_ = Zstd::Load();
  void* stream_ = nullptr;
};

absl::Status TooLarge(absl::string_view name, std::uint64_t limit, std::size_t at) {
  return absl::ResourceExhaustedError(absl::StrCat(name, ": unpacks to more than the limit of ", FormatBytes(limit),
                                                   " (at byte ", at, " of the packed file)"));
}

absl::Status Decode(absl::string_view name, StreamDecoder& decoder, absl::string_view bytes, std::uint64_t limit,
                    absl::FunctionRef<bool(absl::string_view part)> take) {
  std::string buffer(kPartBytes, '\0');
  Packed in{bytes};
  std::uint64_t total = 0;
  for (bool is_done = false; !is_done;) {
    Room out{buffer.data(), buffer.size()};
    const std::size_t before = in.read;
    const absl::StatusOr<bool> step = decoder.Step(in, out);
    if (!step.ok()) return step.status();
    is_done = *step;
    total += out.written;
    if (total > limit) return TooLarge(name, limit, in.read);
    if (out.written > 0 && !take({buffer.data(), out.written})) {
      return absl::AbortedError(absl::StrCat(name, ": the output is not taken"));
    }
    if (!is_done && out.written == 0 && in.read == before) {
      return absl::DataLossError(absl::StrCat(name, ": the input ends inside a member at byte ", in.read,
                                              ": the file is truncated, fetch it again"));
    }
  }
  return absl::OkStatus();
}

// ---- zip: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT

constexpr absl::string_view kZipLocal("PK\x03\x04", 4), kZipCentral("PK\x01\x02", 4), kZipEnd("PK\x05\x06", 4);

template <typename T>
T LittleEndian(absl::string_view bytes, std::size_t at) {
  T out = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out = static_cast<T>(out | static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[at + i])) << (8 * i)));
  }
  return out;
}

struct ZipMember {
  absl::string_view name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;  // 0: as it lies, 8: deflated
  std::uint32_t crc = 0;
  std::uint64_t packed_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header_at = 0;
};

absl::Status ZipDamaged(std::size_t at) {
  return absl::DataLossError(absl::StrCat("zip: damaged or cut at byte ", at, ": fetch it again"));
}

// Sizes that do not fit into 32 bits stand in an extra field, in this order, each only where it is needed.
void ReadZip64(absl::string_view extra, ZipMember& member) {
  constexpr std::uint64_t kElsewhere = 0xffffffff;
  while (extra.size() >= 4) {
    const auto kind = LittleEndian<std::uint16_t>(extra, 0), bytes = LittleEndian<std::uint16_t>(extra, 2);
    absl::string_view field = extra.substr(4, bytes);
    extra.remove_prefix(std::min<std::size_t>(extra.size(), 4 + std::size_t{bytes}));
    if (kind != 1) continue;
    for (std::uint64_t* value : {&member.bytes, &member.packed_bytes, &member.header_at}) {
      if (*value != kElsewhere || field.size() < 8) continue;
      *value = LittleEndian<std::uint64_t>(field, 0);
      field.remove_prefix(8);
    }
  }
}

absl::StatusOr<std::vector<ZipMember>> ZipMembers(absl::string_view bytes) {
  constexpr std::size_t kEndBytes = 22, kMostComment = 65535, kCentralBytes = 46;
  const std::size_t from = bytes.size() - std::min(bytes.size(), kEndBytes + kMostComment);
  const std::size_t end = bytes.substr(from).rfind(kZipEnd);
  if (end == absl::string_view::npos || bytes.size() - from - end < kEndBytes) return ZipDamaged(bytes.size());
  const absl::string_view tail = bytes.substr(from + end);
  std::size_t at = LittleEndian<std::uint32_t>(tail, 16);
  const std::size_t directory_bytes = LittleEndian<std::uint32_t>(tail, 12);
  // Of zip64 the place of the directory is elsewhere too; it ends where its own end record begins.
  if (at == 0xffffffff) at = bytes.substr(0, from + end).find(kZipCentral);
  if (at > bytes.size() || (directory_bytes != 0xffffffff && directory_bytes > bytes.size() - at))
    return ZipDamaged(at);
  std::vector<ZipMember> out;
  while (absl::StartsWith(bytes.substr(at), kZipCentral)) {
    if (bytes.size() - at < kCentralBytes) return ZipDamaged(at);
    const absl::string_view entry = bytes.substr(at);
    const std::size_t name_bytes = LittleEndian<std::uint16_t>(entry, 28),
                      extra_bytes = LittleEndian<std::uint16_t>(entry, 30),
                      comment_bytes = LittleEndian<std::uint16_t>(entry, 32);
    if (entry.size() < kCentralBytes + name_bytes + extra_bytes + comment_bytes) return ZipDamaged(at);
    ZipMember member{entry.substr(kCentralBytes, name_bytes), LittleEndian<std::uint16_t>(entry, 8),
                     LittleEndian<std::uint16_t>(entry, 10),  LittleEndian<std::uint32_t>(entry, 16),
                     LittleEndian<std::uint32_t>(entry, 20),  LittleEndian<std::uint32_t>(entry, 24),
                     LittleEndian<std::uint32_t>(entry, 42)};
    ReadZip64(entry.substr(kCentralBytes + name_bytes, extra_bytes), member);
    if (!absl::EndsWith(member.name, "/") && !absl::StartsWith(member.name, "__MACOSX/")) out.push_back(member);
    at += kCentralBytes + name_bytes + extra_bytes + comment_bytes;
  }
  return out;
}

// The pickle of what torch.save wrote, else the only member, else the only one that is named like an input.
absl::StatusOr<ZipMember> MeantMember(const std::vector<ZipMember>& members) {
  std::vector<ZipMember> pickles, named;
  for (const ZipMember& member : members) {
    if (absl::EndsWith(member.name, "/data.pkl") || member.name == "data.pkl") pickles.push_back(member);
    for (absl::string_view ending :
         {".pickle", ".pkl", ".ashlar", ".trace", ".log", ".txt", ".csv", ".json", ".prof"}) {
      if (absl::EndsWithIgnoreCase(member.name, ending)) {
        named.push_back(member);
        break;
      }
    }
  }
  if (pickles.size() == 1) return pickles.front();
  if (members.size() == 1) return members.front();
  if (named.size() == 1) return named.front();
  constexpr std::size_t kMostNames = 4;
  const std::vector<ZipMember>& choice = named.empty() ? members : named;
  std::vector<std::string> names;
  for (const ZipMember& member : choice) {
    if (names.size() < kMostNames) names.push_back(ToPrintable(member.name.substr(0, 100)));
  }
  if (choice.size() > kMostNames) names.emplace_back("...");
  return absl::InvalidArgumentError(absl::StrCat("is a zip file with ", choice.size(),
                                                 " files: unpack it and name one of them", names.empty() ? "" : ": ",
                                                 absl::StrJoin(names, ", ")));
}

absl::Status UnzipTo(absl::string_view bytes, std::uint64_t limit,
                     absl::FunctionRef<bool(absl::string_view part)> take) {
  const absl::StatusOr<std::vector<ZipMember>> members = ZipMembers(bytes);
  if (!members.ok()) return members.status();
  const absl::StatusOr<ZipMember> member = MeantMember(*members);
  if (!member.ok()) return member.status();
  constexpr std::size_t kLocalBytes = 30;
  const std::size_t at = static_cast<std::size_t>(std::min<std::uint64_t>(member->header_at, bytes.size()));
  const absl::string_view header = bytes.substr(at);
  if (header.size() < kLocalBytes || !absl::StartsWith(header, kZipLocal)) return ZipDamaged(at);
  const std::size_t data =
      kLocalBytes + LittleEndian<std::uint16_t>(header, 26) + LittleEndian<std::uint16_t>(header, 28);
  if (header.size() < data || header.size() - data < member->packed_bytes) return ZipDamaged(at);
  const std::string name = ToPrintable(member->name.substr(0, 100));
  if ((member->flags & 1) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("zip: ", name, " is encrypted: unpack it with its password"));
  }
  const absl::string_view packed = header.substr(data, static_cast<std::size_t>(member->packed_bytes));
  uLong crc = crc32(0, nullptr, 0);
  const auto checked = [&](absl::string_view part) {
    crc = crc32(crc, reinterpret_cast<const Bytef*>(part.data()), Slice(part.size()));
    return take(part);
  };
  if (member->method == 0) {
    if (packed.size() > limit) return TooLarge("zip", limit, at);
    for (std::size_t from = 0; from < packed.size(); from += kPartBytes) {
      if (!checked(packed.substr(from, kPartBytes))) return absl::AbortedError("zip: the output is not taken");
    }
  } else if (member->method == 8) {
    Inflater inflater("zip", -MAX_WBITS);
    const absl::Status status = Decode("zip", inflater, packed, limit, checked);
    if (!status.ok()) return status;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("zip: ", name, " is packed by method ", member->method,
                                                   ", which is not known here: unpack it first"));
  }
  if (crc != member->crc) return Damaged("zip", at, "its checksum differs");
  return absl::OkStatus();
}

bool IsXz(absl::string_view bytes) {
  return absl::StartsWith(bytes, absl::string_view("\xfd"
                                                   "7zXZ\0",
                                                   6));
}
bool IsZstd(absl::string_view bytes) { return absl::StartsWith(bytes, "\x28\xb5\x2f\xfd"); }
bool IsZip(absl::string_view bytes) {
  return absl::StartsWith(bytes, kZipLocal) || absl::StartsWith(bytes, kZipEnd);  // an empty one
}

}  // namespace

bool IsPacked(absl::string_view bytes) { return IsGzip(bytes) || IsXz(bytes) || IsZstd(bytes) || IsZip(bytes); }

absl::Status UnpackTo(absl::string_view bytes, std::uint64_t max_output_bytes,
                      absl::FunctionRef<bool(absl::string_view part)> take) {
  if (IsZip(bytes)) return UnzipTo(bytes, max_output_bytes, take);
  if (IsXz(bytes)) {
    XzDecoder decoder;
    return Decode("xz", decoder, bytes, max_output_bytes, take);
  }
  if (IsZstd(bytes)) {
    ZstdDecoder decoder;
    return Decode("zstd", decoder, bytes, max_output_bytes, take);
  }
  Inflater decoder("gzip", 16 + MAX_WBITS);
  return Decode("gzip", decoder, bytes, max_output_bytes, take);
}

absl::StatusOr<std::string> Unpack(absl::string_view bytes, std::uint64_t max_output_bytes) {
  std::string out;
  absl::Status status = UnpackTo(bytes, max_output_bytes, [&out](absl::string_view part) {
    out.append(part.data(), part.size());
    return true;
  });
  if (!status.ok()) return status;
  return out;
}

}  // namespace ashlar::formats
