#include "hollow/record/log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace ashlar::record {
namespace {

// Who watches the file asks for this lock, and takes none. The mapping keeps it, until the process is gone.
void ClaimAsWriter(int file) {
  struct flock whole {};
  whole.l_type = F_RDLCK;  // two chunks of one log are open at once
  whole.l_whence = SEEK_SET;
  fcntl(file, F_OFD_SETLK, &whole);
}

}  // namespace

void Log::Append(std::string_view text) {
  while (!text.empty() && !is_broken_) {
    if (chunk_ == nullptr || used_ == kChunkBytes) is_broken_ = !MapNext();
    if (is_broken_) return;
    const std::size_t bytes = std::min(text.size(), kChunkBytes - used_);
    std::memcpy(chunk_ + used_, text.data(), bytes);
    used_ += bytes;
    text.remove_prefix(bytes);
  }
}

// Room is taken first: memory of a file that a full disk cannot back ends a process. The chunk before is mapped until
// the next one is, so that the lock never ends between.
bool Log::MapNext() {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (file_bytes_ == 0 ? O_TRUNC : 0), 0600);
  if (file < 0) return false;
  ClaimAsWriter(file);
  void* at = MAP_FAILED;
  if (posix_fallocate(file, static_cast<off_t>(file_bytes_), kChunkBytes) == 0) {
    at = mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(file_bytes_));
  }
  close(file);
  Unmap();
  if (at == MAP_FAILED) return false;
  chunk_ = static_cast<char*>(at);
  used_ = 0;
  file_bytes_ += kChunkBytes;
  return true;
}

void Log::Unmap() {
  if (chunk_ != nullptr) munmap(chunk_, kChunkBytes);
  chunk_ = nullptr;
}

}  // namespace ashlar::record
