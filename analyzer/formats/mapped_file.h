// A file's bytes as memory that the system fills as they are looked at and takes back.
//
//   absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Map(descriptor, size_bytes);
//   Read((*file)->bytes());
//
// The file must not get shorter meanwhile: the system sends SIGBUS then, which ends a program that does not expect it.
#ifndef ASHLAR_ANALYZER_FORMATS_MAPPED_FILE_H_
#define ASHLAR_ANALYZER_FORMATS_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::formats {

// A large input is mapped, not read (input_file.h): the system takes its pages back as a reader is through with them,
// and brings them again should somebody look at them later.
//
//   GiveBackPages(bytes.substr(0, done));   // nothing where the bytes are in memory of the program
//
//   PagesBehind behind(text.data());
//   behind.ReadTo(at);                      // again and again

// Threads: any. Whole pages within a mapped input only, and those right in front that the system maps along with them.
void GiveBackPages(absl::string_view bytes);

// Whether `look` says so of any part: the bytes are looked at some MiB at once, each part with the last `overlap` bytes
// of the one before, and given back.
bool AnyPart(absl::string_view bytes, std::size_t overlap, absl::FunctionRef<bool(absl::string_view part)> look);

// What a reader has left behind, given back some MiB at once.
class PagesBehind {
 public:
  explicit PagesBehind(const char* begin) : begin_(begin) {}

  void ReadTo(const char* at) {
    if (at - begin_ < kAtOnce) [[likely]]
      return;
    GiveBackPages({begin_, static_cast<std::size_t>(at - begin_)});
    begin_ = at;
  }

 private:
  static constexpr std::ptrdiff_t kAtOnce = std::ptrdiff_t{4} << 20;

  const char* begin_;  // of what was not given back
};

// How far the reading of the mapped input is: all 0 where there is none, or several. Threads: any.
struct ReadingProgress {
  std::uint64_t done_bytes = 0;
  std::uint64_t all_bytes = 0;
};
ReadingProgress ProgressOfReading();

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

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_MAPPED_FILE_H_
