// A recording's file on the disk: whole chunks, each written with one call as it comes, so that a process that is
// killed has lost nothing that was handed over. Nobody else writes the file meanwhile (output_file.h). Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_CORE_CHUNK_FILE_H_
#define ASHLAR_ALLOCATOR_CORE_CHUNK_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/chunk_bytes.h"

namespace ashlar::core {

class ChunkFile {
 public:
  // Anew, with its header; a file that is there already is refused unless `overwrites`. Look at status() afterwards.
  ChunkFile(std::string path, bool overwrites);
  ~ChunkFile();
  ChunkFile(const ChunkFile&) = delete;
  ChunkFile& operator=(const ChunkFile&) = delete;

  // After an error nothing more is written. A process made by fork writes nothing: the file is its parent's.
  void Write(absl::string_view payload);
  // Closes the file; the first error of all, if there was one. The message names the file.
  absl::Status Close();
  // Takes the file away again if it was not there before.
  void Discard();
  // In a child that fork made: lets the parent's file go, and with it its lock.
  void Abandon();

  const absl::Status& status() const { return status_; }
  const std::string& path() const { return path_; }

 private:
  bool IsMine() const;
  void WriteOut(absl::string_view head, absl::string_view body);

  std::string path_;
  int file_ = -1;
  int process_ = 0;
  bool is_new_ = false;
  trace::codec::ChunkBytes chunks_;
  absl::Status status_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_CHUNK_FILE_H_
