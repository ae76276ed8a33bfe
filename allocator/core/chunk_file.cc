#include "allocator/core/chunk_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::core {
namespace {

iovec Span(absl::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

}  // namespace

ChunkFile::ChunkFile(std::string path) : path_(std::move(path)), process_(getpid()) {
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(path_, ": the recording cannot be made"));
    return;
  }
  WriteAll(trace::codec::ChunkBytes::FileHeader(), {});
}

ChunkFile::~ChunkFile() {
  if (file_ >= 0) close(file_);
}

void ChunkFile::Write(absl::string_view payload) {
  if (!status_.ok() || file_ < 0) return;
  if (getpid() != process_) {
    status_ = absl::FailedPreconditionError(absl::StrCat(path_, ": the recording is the parent process's"));
    return;
  }
  WriteAll(chunks_.HeaderOf(payload), payload);
}

void ChunkFile::WriteAll(absl::string_view head, absl::string_view body) {
  while (!head.empty() || !body.empty()) {
    const iovec parts[2] = {Span(head), Span(body)};
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
  if (file_ >= 0 && close(file_) != 0) {
    status_.Update(absl::ErrnoToStatus(errno, absl::StrCat(path_, ": the recording cannot be closed")));
  }
  file_ = -1;
  return status_;
}

}  // namespace ashlar::core
