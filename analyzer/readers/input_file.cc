#include "analyzer/readers/input_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "analyzer/readers/gzip.h"

namespace ashlar::readers {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

absl::StatusOr<File> Open(const std::string& path) {
  if (path == "-") return File(stdin);
  File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return absl::ErrnoToStatus(errno, "cannot be opened");
  struct stat info {};
  if (fstat(fileno(file.get()), &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError("is a folder; name a file in it");
  }
  return file;
}

std::size_t FirstCapacity(std::FILE* file) {
  struct stat info {};
  const bool known = fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
  return known ? static_cast<std::size_t>(info.st_size) + 1 : std::size_t{64 * 1024};
}

absl::StatusOr<std::string> ReadAll(std::FILE* file, std::uint64_t max_bytes) {
  std::string bytes;
  std::size_t size = 0;
  std::size_t capacity = FirstCapacity(file);
  for (;;) {
    if (size > max_bytes) return absl::ResourceExhaustedError(absl::StrCat("is larger than ", FormatBytes(max_bytes)));
    bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(capacity, max_bytes + 1)));
    const std::size_t got = std::fread(bytes.data() + size, 1, bytes.size() - size, file);
    size += got;
    if (got == 0) break;
    if (size == bytes.size()) capacity = 2 * size;
  }
  if (std::ferror(file)) return absl::ErrnoToStatus(errno, absl::StrCat("cannot be read past byte ", size));
  bytes.resize(size);
  return bytes;
}

absl::StatusOr<std::string> ReadAndUnpack(const std::string& path, std::uint64_t max_bytes) {
  absl::StatusOr<File> file = Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::string> bytes = ReadAll(file->get(), max_bytes);
  if (!bytes.ok() || !LooksLikeGzip(*bytes)) return bytes;
  return Gunzip(*bytes, max_bytes);
}

}  // namespace

absl::StatusOr<std::string> ReadInput(const std::string& path, std::uint64_t max_bytes) {
  absl::StatusOr<std::string> bytes = ReadAndUnpack(path, max_bytes);
  if (bytes.ok()) return bytes;
  const std::string name = path == "-" ? "standard input" : path;
  return absl::Status(bytes.status().code(), absl::StrCat(name, ": ", bytes.status().message()));
}

}  // namespace ashlar::readers
