#include "allocator/core/kept_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace ashlar::core {
namespace {

std::string FolderOf(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const char* const temporary = std::getenv("TMPDIR");
  return temporary == nullptr || *temporary == '\0' ? "/tmp" : temporary;
}

// A file without a name; -1 with errno set. Some file systems make none: there it has one for a moment.
int OpenUnnamed(const std::string& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string path = folder + "/ashlar_kept_XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

// All of it, by as many calls as it takes; 0, or errno. A file that ends early is EIO.
template <typename Call, typename Bytes>
int Transfer(Call call, int file, Bytes* bytes, std::uint64_t size_bytes, std::uint64_t offset) {
  while (size_bytes > 0) {
    const ssize_t done = call(file, bytes, size_bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    bytes += done;
    size_bytes -= static_cast<std::uint64_t>(done);
    offset += static_cast<std::uint64_t>(done);
  }
  return 0;
}

}  // namespace

// The device may still be copying where a call failed in between.
KeptBytes::~KeptBytes() {
  Finish().IgnoreError();
  for (char* chunk : chunks_) device_.FreeHost(chunk);
  if (staging_ != nullptr) device_.FreeHost(staging_);
  if (file_ >= 0) close(file_);
}

absl::Status KeptBytes::Open() {
  TakeHostMemory();
  return room_.file_bytes == 0 ? absl::OkStatus() : OpenFile();
}

void KeptBytes::TakeHostMemory() {
  for (std::uint64_t taken = 0; taken < room_.host_bytes; taken += kChunkBytes) {
    void* const chunk = device_.AllocateHost(std::min(kChunkBytes, room_.host_bytes - taken));
    if (chunk == nullptr) {
      room_.file_bytes += room_.host_bytes - taken;
      room_.host_bytes = taken;
      return;
    }
    chunks_.push_back(static_cast<char*>(chunk));
  }
}

absl::Status KeptBytes::OpenFile() {
  room_.folder = FolderOf(room_.folder);
  file_ = OpenUnnamed(room_.folder);
  if (file_ < 0) return FileFailed("open", errno);
  staging_ = static_cast<char*>(device_.AllocateHost(kStagingBytes));
  if (staging_ != nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the host has no ", FormatBytes(kStagingBytes), " to copy through"));
}

absl::Status KeptBytes::FileFailed(const char* call, int error) const {
  return absl::UnavailableError(absl::StrCat("the file that keeps ", FormatBytes(room_.file_bytes), " in ",
                                             room_.folder, ": ", call, ": ", std::strerror(error),
                                             ": name another folder, or keep nothing"));
}

absl::Status KeptBytes::ForEachPiece(Piece whole, Stream stream, absl::FunctionRef<absl::Status(const Piece&)> copy) {
  while (whole.size_bytes > 0) {
    const std::uint64_t most = IsInFile(whole)
                                   ? kStagingBytes
                                   : std::min(kChunkBytes - whole.place % kChunkBytes, room_.host_bytes - whole.place);
    const Piece piece{whole.place, whole.address, std::min(most, whole.size_bytes)};
    absl::Status status = copy(piece);
    if (status.ok() && told_ != nullptr) status = device_.SynchronizeStream(stream);
    if (!status.ok()) return status;
    if (told_ != nullptr) told_(piece.size_bytes);
    whole = {piece.place + piece.size_bytes, piece.address + piece.size_bytes, whole.size_bytes - piece.size_bytes};
  }
  return absl::OkStatus();
}

char* KeptBytes::HostPlace(const Piece& piece) const {
  return chunks_[piece.place / kChunkBytes] + piece.place % kChunkBytes;
}

absl::Status KeptBytes::Save(std::uint64_t address, std::uint64_t size_bytes, Stream stream) {
  streams_.insert(stream);
  absl::Status status = ForEachPiece({saved_bytes_, address, size_bytes}, stream, [&](const Piece& piece) {
    if (IsInFile(piece)) return SaveToFile(piece, stream);
    return device_.CopyToHost(HostPlace(piece), piece.address, piece.size_bytes, stream);
  });
  if (status.ok()) saved_bytes_ += size_bytes;
  return status;
}

absl::Status KeptBytes::Load(std::uint64_t place, std::uint64_t address, std::uint64_t size_bytes, Stream stream) {
  streams_.insert(stream);
  return ForEachPiece({place, address, size_bytes}, stream, [&](const Piece& piece) {
    if (IsInFile(piece)) return LoadFromFile(piece, stream);
    return device_.CopyToDevice(piece.address, HostPlace(piece), piece.size_bytes, stream);
  });
}

absl::Status KeptBytes::SaveToFile(const Piece& piece, Stream stream) {
  absl::Status status = device_.CopyToHost(staging_, piece.address, piece.size_bytes, stream);
  if (status.ok()) status = device_.SynchronizeStream(stream);
  if (!status.ok()) return status;
  const int error = Transfer(pwrite, file_, staging_, piece.size_bytes, piece.place - room_.host_bytes);
  return error == 0 ? absl::OkStatus() : FileFailed("write", error);
}

absl::Status KeptBytes::LoadFromFile(const Piece& piece, Stream stream) {
  const int error = Transfer(pread, file_, staging_, piece.size_bytes, piece.place - room_.host_bytes);
  if (error != 0) return FileFailed("read", error);
  absl::Status status = device_.CopyToDevice(piece.address, staging_, piece.size_bytes, stream);
  if (status.ok()) status = device_.SynchronizeStream(stream);
  return status;
}

absl::Status KeptBytes::Finish() {
  absl::Status status;
  for (const Stream stream : streams_) status.Update(device_.SynchronizeStream(stream));
  streams_.clear();
  return status;
}

}  // namespace ashlar::core
