#include "analyzer/readers/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

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

// Packed ones from here on may unpack to what is large.
constexpr std::size_t kLeastUnpackedToFile = 4 * kMiB;

// Smaller ones are read: they do not suffer from a writer that cuts them short.
constexpr std::uint64_t kLeastMappedBytes = 64 * kMiB;

// Nothing: no file that is to be mapped. It is opened once, as a pipe's writer is there once.
std::shared_ptr<const MappedFile> MapIfLarge(std::FILE* file) {
  struct stat info {};
  if (file == stdin || fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) return nullptr;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size < kLeastMappedBytes || size > kMostMappedBytes) return nullptr;
  absl::StatusOr<std::shared_ptr<const MappedFile>> mapped = MappedFile::Map(fileno(file), size);
  return mapped.ok() ? *mapped : nullptr;
}

// A file that has no name, for what was unpacked; nullptr where there is no room for one.
File FileWithoutName() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  const int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return File(descriptor < 0 ? nullptr : fdopen(descriptor, "w+b"));
}

absl::StatusOr<InputBytes> UnpackMapped(absl::string_view packed, std::uint64_t max_bytes) {
  const File out = packed.size() < kLeastUnpackedToFile ? nullptr : FileWithoutName();
  std::uint64_t size = 0;
  if (out != nullptr) {
    const absl::Status status = GunzipTo(packed, max_bytes, [&](absl::string_view part) {
      size += part.size();
      return std::fwrite(part.data(), 1, part.size(), out.get()) == part.size();
    });
    const bool is_written = std::fflush(out.get()) == 0;
    if (absl::IsResourceExhausted(status)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(status.message(), "; unpack it: a file as it lies may be larger"));
    }
    if (!status.ok() && !absl::IsAborted(status)) return status;
    if (status.ok() && is_written && size > 0) {
      absl::StatusOr<std::shared_ptr<const MappedFile>> mapped = MappedFile::Map(fileno(out.get()), size);
      if (mapped.ok()) return InputBytes(*std::move(mapped));
    }
  }
  absl::StatusOr<std::string> bytes = Gunzip(packed, max_bytes);
  if (!bytes.ok()) return bytes.status();
  return InputBytes(*std::move(bytes));
}

absl::StatusOr<InputBytes> OpenAndUnpack(const std::string& path, std::uint64_t max_bytes) {
  const absl::StatusOr<File> file = Open(path);
  if (!file.ok()) return file.status();
  InputBytes stored(MapIfLarge(file->get()));
  if (stored.view().empty()) {
    absl::StatusOr<std::string> bytes = ReadAll(file->get(), max_bytes);
    if (!bytes.ok()) return bytes.status();
    stored = InputBytes(*std::move(bytes));
  }
  if (!LooksLikeGzip(stored)) return stored;
  return UnpackMapped(stored, max_bytes);
}

template <typename T>
absl::StatusOr<T> Named(const std::string& path, absl::StatusOr<T> bytes) {
  if (bytes.ok()) return bytes;
  const std::string name = path == "-" ? "standard input" : path;
  return absl::Status(bytes.status().code(), absl::StrCat(name, ": ", bytes.status().message()));
}

}  // namespace

absl::StatusOr<std::string> ReadInput(const std::string& path, std::uint64_t max_bytes) {
  return Named(path, ReadAndUnpack(path, max_bytes));
}

absl::StatusOr<InputBytes> OpenInput(const std::string& path, std::uint64_t max_bytes) {
  return Named(path, OpenAndUnpack(path, max_bytes));
}

}  // namespace ashlar::readers
