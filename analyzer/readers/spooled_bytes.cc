#include "analyzer/readers/spooled_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"

namespace ashlar::readers {
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

}  // namespace ashlar::readers
