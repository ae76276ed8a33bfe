// The bytes of an input: a file or stdin ("-"), unpacked when its content is packed (unpack.h), whatever its name.
//
//   absl::StatusOr<std::string> bytes = ReadInput("snapshot.pickle.gz");
//   absl::StatusOr<InputBytes> bytes = OpenInput("snapshot.pickle.gz");   // the same, a large one not in memory
//
// A large file is mapped, and a long stream or what a packed one unpacks to goes into a file that nobody else sees and
// is mapped: the readers give pages back as they go (mapped_file.h).
#ifndef ASHLAR_ANALYZER_FORMATS_INPUT_FILE_H_
#define ASHLAR_ANALYZER_FORMATS_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "analyzer/formats/mapped_file.h"

namespace ashlar::formats {

inline constexpr std::uint64_t kDefaultMaxInputBytes = 4 * kGiB;
inline constexpr std::uint64_t kMostMappedBytes = 1024 * kGiB;

class InputBytes {
 public:
  InputBytes() = default;
  explicit InputBytes(std::string bytes) : text_(std::move(bytes)) {}
  explicit InputBytes(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {}

  absl::string_view view() const { return file_ != nullptr ? file_->bytes() : absl::string_view(text_); }
  operator absl::string_view() const { return view(); }  // NOLINT: they are bytes
  // They were read, and take no memory any more: the view is empty.
  void Clear() {
    file_ = nullptr;
    std::string().swap(text_);
  }

 private:
  std::string text_;
  std::shared_ptr<const MappedFile> file_;
};

// What a format is told by.
inline constexpr std::size_t kHeadBytes = 64 * kKiB;

struct OpenRules {
  // Of what is read or unpacked; for a file that is mapped as it lies it is kMostMappedBytes.
  std::uint64_t max_bytes = kDefaultMaxInputBytes;
  // Asked with the first kHeadBytes as they are unpacked, or all where there are fewer. True: they are enough,
  // and all that the caller gets. Nothing behind them is read.
  bool (*is_enough)(absl::string_view head) = nullptr;
  // Called once where nothing has come from a pipe for kQuietSeconds. It is waited for all the same.
  std::function<void()> on_quiet = {};
  // What is no regular file is refused: nobody is waited for.
  bool files_only = false;
};

inline constexpr int kQuietSeconds = 2;

// Errors name the path. NotFound: no such file; InvalidArgument: a folder, or no file where files are asked for;
// ResourceExhausted: larger than `max_bytes` (read or unpacked); DataLoss: damaged or truncated.
absl::StatusOr<std::string> ReadInput(const std::string& path, std::uint64_t max_bytes = kDefaultMaxInputBytes);
// All of it, whatever `is_enough` says.
absl::StatusOr<std::string> ReadInput(const std::string& path, const OpenRules& rules);

// The same, a large one not in memory.
absl::StatusOr<InputBytes> OpenInput(const std::string& path, const OpenRules& rules = {});

// What the bytes of a packed input unpack to.
absl::StatusOr<InputBytes> UnpackInput(absl::string_view packed, const OpenRules& rules);

// Bytes that come piece by piece, of which nobody knows how many: the first MiB are held, and with more they all lie in
// a file that nobody else sees and that is mapped at the end. So a long stream takes disk, and not memory.
//
//   SpooledBytes spool;
//   while (...) spool.Append(part);
//   InputBytes bytes = std::move(spool).Take();
//
// Where no such file can be made or filled (no folder for it, a full disk) they are held after all. Not thread-safe.
class SpooledBytes {
 public:
  SpooledBytes() = default;
  ~SpooledBytes();
  SpooledBytes(const SpooledBytes&) = delete;
  SpooledBytes& operator=(const SpooledBytes&) = delete;

  void Append(absl::string_view part);
  std::uint64_t size() const { return in_file_bytes_ + held_.size(); }
  // Once, at the end.
  InputBytes Take() &&;

  static constexpr std::size_t kMostHeldBytes = 16 * kMiB;

 private:
  void MoveToFile();
  bool WriteHeld();
  void MoveBack();
  void CloseFile();

  int file_ = -1;
  bool has_no_file_ = false;  // it was tried
  std::uint64_t in_file_bytes_ = 0;
  std::string held_;
};

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_INPUT_FILE_H_
