// A file's bytes as memory that the system fills as they are looked at and takes back (given_pages.h).
//
//   absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Map(descriptor, size_bytes);
//   Read((*file)->bytes());
//
// The file must not get shorter meanwhile: the system sends SIGBUS then, which ends a program that does not expect it.
#ifndef ASHLAR_ANALYZER_READERS_MAPPED_FILE_H_
#define ASHLAR_ANALYZER_READERS_MAPPED_FILE_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::readers {

class MappedFile {
 public:
  // The descriptor may be closed afterwards. `size_bytes` is above 0.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Map(int descriptor, std::size_t size_bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return {begin_, size_}; }

 private:
  MappedFile(const char* begin, std::size_t size);

  const char* begin_;
  std::size_t size_;
};

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_MAPPED_FILE_H_
