// Bytes that come piece by piece, of which nobody knows how many: the first MiB are held, and with more they all lie in
// a file that nobody else sees and that is mapped at the end. So a long stream takes disk, and not memory.
//
//   SpooledBytes spool;
//   while (...) spool.Append(part);
//   InputBytes bytes = std::move(spool).Take();
//
// Where no such file can be made or filled (no folder for it, a full disk) they are held after all. Not thread-safe.
#ifndef ASHLAR_ANALYZER_READERS_SPOOLED_BYTES_H_
#define ASHLAR_ANALYZER_READERS_SPOOLED_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "analyzer/readers/input_file.h"

namespace ashlar::readers {

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

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_SPOOLED_BYTES_H_
