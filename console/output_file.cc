#include "console/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

constexpr std::array<int, 3> kSignalsToClean = {SIGINT, SIGTERM, SIGHUP};
constexpr std::size_t kMostPending = 64;
constexpr std::size_t kMostStemBytes = 200;  // of 255 that a name may have

// Names that the handler takes away. A slot is taken before the file is made, and given back after it is gone.
std::array<std::atomic<const char*>, kMostPending> pending_names{};
std::atomic<unsigned> made_count{0};

void TakeAwayAndEnd(int signal) {
  for (const std::atomic<const char*>& name : pending_names) {
    const char* const path = name.load();
    if (path != nullptr) unlink(path);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// A handler of somebody else's stays, and so does a signal that is ignored.
void HandleSignals() {
  for (const int signal : kSignalsToClean) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = TakeAwayAndEnd;
    sigaction(signal, &ours, nullptr);
  }
}

// The slot owns the name until it is given back; -1 where there is none left.
int TakeSlot(const std::string& path) {
  [[maybe_unused]] static const bool is_handled = (HandleSignals(), true);
  char* const name = strdup(path.c_str());
  for (std::size_t i = 0; name != nullptr && i < kMostPending; ++i) {
    const char* nobody = nullptr;
    if (pending_names[i].compare_exchange_strong(nobody, name)) return static_cast<int>(i);
  }
  std::free(name);
  return -1;
}

void GiveSlotBack(int slot) {
  if (slot >= 0) std::free(const_cast<char*>(pending_names[static_cast<std::size_t>(slot)].exchange(nullptr)));
}

// What a link names; nullopt: it is none.
std::optional<std::string> NamedByLink(const std::string& path) {
  std::array<char, PATH_MAX> buffer;
  const ssize_t size = readlink(path.c_str(), buffer.data(), buffer.size());
  if (size <= 0 || static_cast<std::size_t>(size) == buffer.size()) return std::nullopt;
  std::string out(buffer.data(), static_cast<std::size_t>(size));
  const std::size_t slash = path.rfind('/');
  return out.front() == '/' || slash == std::string::npos ? out : path.substr(0, slash + 1) + out;
}

// Also where links lead to a file that is not there yet.
std::string WithoutLinks(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::string at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    const std::unique_ptr<char, decltype(&std::free)> real(realpath(at.c_str(), nullptr), &std::free);
    if (real != nullptr) return real.get();
    std::optional<std::string> next = NamedByLink(at);
    if (!next.has_value()) break;
    at = *std::move(next);
  }
  return at;
}

std::string NameBeside(const std::string& target) {
  const std::size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  const std::string stem = target.substr(folder.size(), kMostStemBytes);
  return absl::StrCat(folder, ".", stem, ".", getpid(), "-", made_count++);
}

// A new file, open; below 0 where it could not be made. The old one's rights, where there is one.
int MakeFile(const std::string& path, std::optional<mode_t> rights) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return file;
  if (rights.has_value() && fchmod(file, *rights & 07777) != 0) errno = 0;  // a file system without rights
  return file;
}

}  // namespace

absl::Status CannotWrite(const std::string& path) {
  if (errno == ENXIO) return absl::UnavailableError(absl::StrCat("cannot write ", path, ": nobody reads this pipe"));
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

PendingName::PendingName(std::string asked, std::string target, std::string path, int slot, int descriptor)
    : asked_(std::move(asked)),
      target_(std::move(target)),
      path_(std::move(path)),
      slot_(slot),
      descriptor_(descriptor) {
  fstat(descriptor_, &made_);
}

PendingName::PendingName(PendingName&& other) noexcept
    : asked_(std::move(other.asked_)),
      target_(std::move(other.target_)),
      path_(std::move(other.path_)),
      slot_(std::exchange(other.slot_, -1)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      made_(other.made_) {}

PendingName::~PendingName() {
  if (descriptor_ >= 0) close(descriptor_);
  if (slot_ < 0) return;
  unlink(path_.c_str());
  GiveSlotBack(slot_);
}

// A pipe is opened without waiting for its reader, and written to as others are.
absl::StatusOr<PendingName> PendingName::InPlace(const std::string& target) {
  const int file = open(target.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return CannotWrite(target);
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return PendingName(target, target, target, -1, file);
}

int PendingName::TakeDescriptor() { return std::exchange(descriptor_, -1); }

bool PendingName::IsMine() const {
  struct stat named {};
  if (is_in_place()) return true;
  return lstat(path_.c_str(), &named) == 0 && made_.st_dev == named.st_dev && made_.st_ino == named.st_ino;
}

absl::StatusOr<PendingName> PendingName::Make(const std::string& target) {
  struct stat old {};
  const bool is_there = stat(target.c_str(), &old) == 0;
  if (!is_there && errno == ELOOP) return CannotWrite(target);
  if (is_there && !S_ISREG(old.st_mode)) return InPlace(target);
  if (is_there && access(target.c_str(), W_OK) != 0) return CannotWrite(target);
  const std::string real = WithoutLinks(target);
  std::string beside;
  int slot = -1;
  int file = -1;
  do {  // a name may be left by a process that was killed
    GiveSlotBack(slot);
    beside = NameBeside(real);
    slot = TakeSlot(beside);
    file = slot < 0 ? -1 : MakeFile(beside, is_there ? std::optional(old.st_mode) : std::nullopt);
  } while (slot >= 0 && file < 0 && errno == EEXIST);
  if (file >= 0) return PendingName(target, real, std::move(beside), slot, file);
  const int why = slot < 0 ? EACCES : errno;
  GiveSlotBack(slot);
  const bool is_closed_folder = why == EACCES || why == EPERM || why == EROFS;
  if (is_there && is_closed_folder) return InPlace(target);
  errno = why;
  return CannotWrite(target);
}

absl::Status PendingName::Commit() {
  if (slot_ < 0) return absl::OkStatus();
  if (!IsMine()) {
    return absl::UnavailableError(
        absl::StrCat("cannot write ", asked_, ": another file took the place of the new one"));
  }
  if (std::rename(path_.c_str(), target_.c_str()) != 0) return CannotWrite(asked_);
  GiveSlotBack(std::exchange(slot_, -1));
  return absl::OkStatus();
}

namespace {

bool IsSameFile(const std::string& input, const struct stat& output) {
  struct stat found {};
  const int code = input == "-" ? fstat(STDIN_FILENO, &found) : stat(input.c_str(), &found);
  return code == 0 && found.st_dev == output.st_dev && found.st_ino == output.st_ino;
}

}  // namespace

OutputFile::OutputFile(std::string path, std::optional<PendingName> name, std::FILE* file)
    : path_(std::move(path)), name_(std::move(name)), file_(file) {}

OutputFile::~OutputFile() {
  if (file_ != nullptr && name_.has_value()) std::fclose(file_);
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(const std::string& path) {
  if (path == "-") return std::unique_ptr<OutputFile>(new OutputFile("standard output", std::nullopt, stdout));
  absl::StatusOr<PendingName> name = PendingName::Make(path);
  if (!name.ok()) return name.status();
  const int descriptor = name->TakeDescriptor();
  std::FILE* const file = fdopen(descriptor, "wb");
  if (file == nullptr) {
    close(descriptor);
    return CannotWrite(path);
  }
  return std::unique_ptr<OutputFile>(new OutputFile(path, *std::move(name), file));
}

void OutputFile::Append(absl::string_view bytes) {
  if (!status_.ok()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) status_ = CannotWrite(path_);
}

absl::Status OutputFile::Close() {
  if (file_ == nullptr) return status_;
  if (std::fflush(file_) != 0) status_.Update(CannotWrite(path_));
  std::FILE* const file = std::exchange(file_, nullptr);
  if (name_.has_value() && std::fclose(file) != 0) status_.Update(CannotWrite(path_));
  return status_;
}

absl::Status OutputFile::Commit() {
  status_ = Close();
  if (!name_.has_value()) return status_;
  if (status_.ok()) status_ = name_->Commit();
  name_.reset();
  return status_;
}

absl::Status NoInputIsWritten(absl::Span<const std::string> inputs, std::initializer_list<NamedOutput> outputs) {
  for (const NamedOutput& output : outputs) {
    struct stat old {};
    if (output.path.empty() || output.path == "-" || stat(output.path.c_str(), &old) != 0) continue;
    if (!S_ISREG(old.st_mode)) continue;
    for (const std::string& input : inputs) {
      if (!IsSameFile(input, old)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(output.flag, ": ", output.path, " is an input too and would be lost: write to another file"));
    }
  }
  return absl::OkStatus();
}

}  // namespace ashlar::cli
