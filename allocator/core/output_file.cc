#include "allocator/core/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::core {
namespace {

constexpr int kOutputMode = 0644;
constexpr char kNameAnother[] = "name another file (%p in a name is the process's number)";

enum class FileLock { kMine, kTaken, kUnknown };  // unknown: the file system has no locks

// Who asks whether a file has a writer (ashlar watch) holds a shared lock for a moment; a recorder keeps its own.
FileLock TryFileLock(int file, int kind) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (flock(file, kind | LOCK_NB) == 0) return FileLock::kMine;
    if (errno != EWOULDBLOCK) return FileLock::kUnknown;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return FileLock::kTaken;
}

absl::Status FileError(int error, const std::string& path, absl::string_view what) {
  if (error == ENXIO) return absl::UnavailableError(absl::StrCat(path, ": ", what, ": nobody reads this pipe"));
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

absl::Status TakenError(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": another recorder is writing it, in this process or another: ", kNameAnother));
}

struct stat FileInfo(int file) {
  struct stat info {};
  if (fstat(file, &info) != 0) info.st_mode = 0;
  return info;
}

absl::Status CheckClaim(int file, const std::string& path, bool is_new, bool overwrites) {
  if (!S_ISREG(FileInfo(file).st_mode)) return absl::OkStatus();
  const FileLock lock = TryFileLock(file, LOCK_EX);
  if (lock == FileLock::kTaken) return TakenError(path);
  const bool is_empty = FileInfo(file).st_size == 0 && (is_new || lock == FileLock::kMine);
  if (is_empty) return absl::OkStatus();
  if (!overwrites) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": the file is there already: ", kNameAnother, " or set RecorderOptions::overwrites"));
  }
  return ftruncate(file, 0) == 0 ? absl::OkStatus() : FileError(errno, path, "cannot be emptied");
}

// The file that a chain of links ends at; the path itself where there is none.
std::string ResolvedPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real == nullptr ? path : std::string(real.get());
}

// 0, or errno.
int WriteBytes(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

absl::Status WriteParts(int file, const std::string& path, absl::Span<const absl::string_view> parts) {
  int error = 0;
  for (const absl::string_view part : parts) {
    if (error == 0) error = WriteBytes(file, part);
  }
  if (close(file) != 0 && error == 0) error = errno;
  return error == 0 ? absl::OkStatus() : FileError(error, path, "cannot be written");
}

// Whether the file may be replaced; true: it is no regular file, and is written as it is.
absl::StatusOr<bool> IsWrittenInPlace(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return false;
  if (S_ISDIR(info.st_mode)) return FileError(EISDIR, path, "cannot be written");
  if (!S_ISREG(info.st_mode)) return true;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const FileLock lock = TryFileLock(file, LOCK_SH);  // shared: others may look at the same moment
  close(file);
  if (lock == FileLock::kTaken) return TakenError(path);
  return false;
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "host";
}

// What is there already. A pipe without a reader is an error (ENXIO), and not waited for.
int OpenThere(const std::string& path, int flags) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, kOutputMode);
  if (file >= 0) fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return file;
}

// A new file beside `target`, which nobody has put there. Its name goes to `written`.
int OpenBeside(const std::string& target, std::string& written) {
  static std::atomic<int> next{0};
  int file = -1;
  do {
    written = absl::StrCat(target, ".", getpid(), ".", ++next, ".tmp");
    file = open(written.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOutputMode);
  } while (file < 0 && errno == EEXIST);
  return file;
}

}  // namespace

std::string OutputPath(absl::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p') absl::StrAppend(&out, getpid());
    if (next == 'h') out += HostName();
    if (next == '%') out += '%';
    if (next == 'p' || next == 'h' || next == '%') {
      ++i;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

absl::StatusOr<ClaimedFile> ClaimFile(const std::string& path, bool overwrites) {
  ClaimedFile out;
  out.descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOutputMode);
  out.is_new = out.descriptor >= 0;
  if (!out.is_new && errno == EEXIST) out.descriptor = OpenThere(path, O_CREAT);
  if (out.descriptor < 0) return FileError(errno, path, "the recording cannot be made");
  const absl::Status status = CheckClaim(out.descriptor, path, out.is_new, overwrites);
  if (status.ok()) return out;
  close(out.descriptor);
  return status;
}

absl::Status ReplaceFile(const std::string& path, absl::Span<const absl::string_view> parts) {
  const absl::StatusOr<bool> in_place = IsWrittenInPlace(path);
  if (!in_place.ok()) return in_place.status();
  const std::string target = ResolvedPath(path);
  std::string written;
  const int file = *in_place ? OpenThere(target, 0) : OpenBeside(target, written);
  if (file < 0) return FileError(errno, path, "cannot be written");
  absl::Status status = WriteParts(file, path, parts);
  if (*in_place) return status;
  if (status.ok() && std::rename(written.c_str(), target.c_str()) != 0) {
    status = FileError(errno, path, "cannot be written");
  }
  if (!status.ok()) unlink(written.c_str());
  return status;
}

namespace {

iovec IoSpan(absl::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

}  // namespace

ChunkFile::ChunkFile(std::string path, bool overwrites) : path_(std::move(path)), process_(getpid()) {
  const absl::StatusOr<ClaimedFile> claimed = ClaimFile(path_, overwrites);
  status_ = claimed.status();
  if (!claimed.ok()) return;
  file_ = claimed->descriptor;
  is_new_ = claimed->is_new;
  WriteOut(trace::codec::ChunkBytes::FileHeader(), {});
}

ChunkFile::~ChunkFile() { Close().IgnoreError(); }

bool ChunkFile::IsMine() const { return getpid() == process_; }

void ChunkFile::Write(absl::string_view payload) {
  if (!status_.ok() || file_ < 0) return;
  if (!IsMine()) return Abandon();
  WriteOut(chunks_.HeaderOf(payload), payload);
}

void ChunkFile::Abandon() {
  if (file_ >= 0) close(file_);
  file_ = -1;
  status_.Update(absl::FailedPreconditionError(absl::StrCat(path_, ": the recording is the parent process's")));
}

void ChunkFile::WriteOut(absl::string_view head, absl::string_view body) {
  while (!head.empty() || !body.empty()) {
    const iovec parts[2] = {IoSpan(head), IoSpan(body)};
    const ssize_t written = writev(file_, parts, 2);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      status_ = absl::ErrnoToStatus(errno, absl::StrCat(path_, ": the recording ends here, it cannot be written"));
      return;
    }
    const auto count = static_cast<std::size_t>(written);
    const std::size_t of_head = count < head.size() ? count : head.size();
    head.remove_prefix(of_head);
    body.remove_prefix(count - of_head);
  }
}

absl::Status ChunkFile::Close() {
  if (file_ < 0) return status_;
  if (!IsMine()) {
    Abandon();
    return status_;
  }
  flock(file_, LOCK_UN);  // also where a child that no handler of fork has seen holds a copy
  if (close(file_) != 0) {
    status_.Update(absl::ErrnoToStatus(errno, absl::StrCat(path_, ": the recording cannot be closed")));
  }
  file_ = -1;
  return status_;
}

void ChunkFile::Discard() {
  if (is_new_ && IsMine()) unlink(path_.c_str());
}

}  // namespace ashlar::core
