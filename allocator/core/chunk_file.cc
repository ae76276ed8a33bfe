#include "allocator/core/chunk_file.h"

#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/core/output_file.h"

namespace ashlar::core {
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
