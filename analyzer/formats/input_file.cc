#include "analyzer/formats/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "analyzer/formats/unpack.h"

namespace ashlar::formats {
namespace {

// A file that has no name; -1 where there is no room for one.
int FileWithoutName() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string name = folder + "/ashlar-XXXXXX";  // some file systems, as of older containers, give every file a name
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

}  // namespace

SpooledBytes::~SpooledBytes() { CloseFile(); }

void SpooledBytes::Append(absl::string_view part) {
  held_.append(part.data(), part.size());
  if (held_.size() >= kMostHeldBytes && !has_no_file_) MoveToFile();
}

void SpooledBytes::MoveToFile() {
  if (file_ < 0) file_ = FileWithoutName();
  if (file_ < 0 || !WriteHeld()) MoveBack();
}

bool SpooledBytes::WriteHeld() {
  std::size_t done = 0;
  while (done < held_.size()) {
    const ssize_t count =
        pwrite(file_, held_.data() + done, held_.size() - done, static_cast<off_t>(in_file_bytes_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  in_file_bytes_ += done;
  held_.clear();
  return true;
}

// There is no file, or no more room for one.
void SpooledBytes::MoveBack() {
  has_no_file_ = true;
  std::string whole(static_cast<std::size_t>(in_file_bytes_), '\0');
  std::size_t done = 0;
  while (done < whole.size()) {
    const ssize_t count = pread(file_, whole.data() + done, whole.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  held_.insert(0, whole);
  in_file_bytes_ = 0;
  CloseFile();
}

InputBytes SpooledBytes::Take() && {
  if (file_ < 0) return InputBytes(std::move(held_));
  if (WriteHeld()) {
    absl::StatusOr<std::shared_ptr<const MappedFile>> mapped = MappedFile::Map(file_, size());
    if (mapped.ok()) return InputBytes(*std::move(mapped));
  }
  MoveBack();
  return InputBytes(std::move(held_));
}

void SpooledBytes::CloseFile() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

bool IsPipe(mode_t mode) { return S_ISFIFO(mode) || S_ISSOCK(mode); }

// Until there is something to read, or the writer is gone.
void WaitForWriter(int descriptor, const OpenRules& rules) {
  pollfd asked{descriptor, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&asked, 1, kQuietSeconds * 1000);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0 && rules.on_quiet) rules.on_quiet();
  while (ready == 0 || (ready < 0 && errno == EINTR)) ready = poll(&asked, 1, -1);
}

// A pipe that nobody writes yet is opened all the same; from then on reading it waits.
absl::StatusOr<File> OpenNamed(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, "cannot be opened");
  File file(fdopen(descriptor, "rb"));
  if (file != nullptr) return file;
  close(descriptor);
  return absl::ErrnoToStatus(errno, "cannot be opened");
}

absl::StatusOr<File> Open(const std::string& path, const OpenRules& rules) {
  absl::StatusOr<File> file = path == "-" ? File(stdin) : OpenNamed(path);
  if (!file.ok()) return file;
  const int descriptor = fileno(file->get());
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return absl::ErrnoToStatus(errno, "cannot be opened");
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError("is a folder; name a file in it");
  if (rules.files_only && !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError("is no file, but a pipe or a device");
  if (IsPipe(info.st_mode)) WaitForWriter(descriptor, rules);
  if (path != "-") fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
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

absl::StatusOr<std::string> ReadAndUnpack(const std::string& path, const OpenRules& rules) {
  const absl::StatusOr<File> file = Open(path, rules);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::string> bytes = ReadAll(file->get(), rules.max_bytes);
  if (!bytes.ok() || !IsPacked(*bytes)) return bytes;
  return Unpack(*bytes, rules.max_bytes);
}

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

bool IsEnough(absl::string_view bytes, const OpenRules& rules) {
  return rules.is_enough != nullptr && rules.is_enough(bytes.substr(0, kHeadBytes));
}

InputBytes HeadOf(absl::string_view bytes) { return InputBytes(std::string(bytes.substr(0, kHeadBytes))); }

// As many bytes as `buffer` has room for, fewer at the end.
absl::StatusOr<absl::string_view> ReadPart(std::FILE* file, std::uint64_t at, std::string& buffer) {
  const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file);
  if (std::ferror(file)) return absl::ErrnoToStatus(errno, absl::StrCat("cannot be read past byte ", at + got));
  return absl::string_view(buffer.data(), got);
}

absl::StatusOr<InputBytes> ReadStream(std::FILE* file, const OpenRules& rules) {
  constexpr std::size_t kPartBytes = kMiB;
  std::string buffer(kHeadBytes, '\0');
  absl::StatusOr<absl::string_view> part = ReadPart(file, 0, buffer);
  if (part.ok() && !IsPacked(*part) && IsEnough(*part, rules)) return HeadOf(*part);
  SpooledBytes spool;
  for (; part.ok() && !part->empty(); part = ReadPart(file, spool.size(), buffer)) {
    spool.Append(*part);
    if (spool.size() > rules.max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("is larger than ", FormatBytes(rules.max_bytes)));
    }
    buffer.resize(kPartBytes);
  }
  if (!part.ok()) return part.status();
  return std::move(spool).Take();
}

}  // namespace

absl::StatusOr<InputBytes> UnpackInput(absl::string_view packed, const OpenRules& rules) {
  SpooledBytes spool;
  std::string head;
  bool is_enough = false;
  const absl::Status status = UnpackTo(packed, rules.max_bytes, [&](absl::string_view part) {
    if (head.size() < kHeadBytes) {
      absl::StrAppend(&head, part.substr(0, kHeadBytes - head.size()));
      is_enough = head.size() == kHeadBytes && IsEnough(head, rules);
    }
    if (!is_enough) spool.Append(part);
    return !is_enough;
  });
  if (is_enough || (status.ok() && head.size() < kHeadBytes && IsEnough(head, rules))) return HeadOf(head);
  if (absl::IsResourceExhausted(status)) {
    return absl::ResourceExhaustedError(absl::StrCat(status.message(), "; unpack it: a file as it lies may be larger"));
  }
  if (!status.ok()) return status;
  return std::move(spool).Take();
}

namespace {

absl::StatusOr<InputBytes> OpenAndUnpack(const std::string& path, const OpenRules& rules) {
  const absl::StatusOr<File> file = Open(path, rules);
  if (!file.ok()) return file.status();
  InputBytes stored(MapIfLarge(file->get()));
  if (stored.view().empty()) {
    absl::StatusOr<InputBytes> bytes = ReadStream(file->get(), rules);
    if (!bytes.ok()) return bytes.status();
    stored = *std::move(bytes);
  }
  if (IsPacked(stored)) return UnpackInput(stored, rules);
  return IsEnough(stored, rules) ? HeadOf(stored) : stored;
}

template <typename T>
absl::StatusOr<T> Named(const std::string& path, absl::StatusOr<T> bytes) {
  if (bytes.ok()) return bytes;
  const std::string name = path == "-" ? "standard input" : path;
  return absl::Status(bytes.status().code(), absl::StrCat(name, ": ", bytes.status().message()));
}

}  // namespace

absl::StatusOr<std::string> ReadInput(const std::string& path, std::uint64_t max_bytes) {
  return ReadInput(path, OpenRules{.max_bytes = max_bytes});
}

absl::StatusOr<std::string> ReadInput(const std::string& path, const OpenRules& rules) {
  return Named(path, ReadAndUnpack(path, rules));
}

absl::StatusOr<InputBytes> OpenInput(const std::string& path, const OpenRules& rules) {
  return Named(path, OpenAndUnpack(path, rules));
}

}  // namespace ashlar::formats
