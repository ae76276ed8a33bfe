// The file that rows go to: memory of the file itself, so that what was written stays written however the process ends
// (exit, _exit, a signal, kill -9), without a handler of ours and without an open file.
//
//   Log log("/dev/shm/ashlar-1234/native-77.log");
//   log.Append("a 12 0 0x7f0000000000 1048576 0x0 3 cudaMalloc\n");
//
// A shared lock (F_OFD_SETLK) on the file says that its writer lives: ashlar watch asks for it.
//
// The file grows by kChunkBytes at a time; what is not written yet reads as zeros. A full disk ends the log for good.
// Not thread-safe. Sizes are bytes.
#ifndef ASHLAR_HOLLOW_RECORD_LOG_H_
#define ASHLAR_HOLLOW_RECORD_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ashlar::record {

class Log {
 public:
  static constexpr std::size_t kChunkBytes = std::size_t{256} << 10;

  // What such a file had is gone. Nothing happens before the first row.
  explicit Log(std::string path) : path_(std::move(path)) {}
  ~Log() { Unmap(); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void Append(std::string_view text);
  bool is_broken() const { return is_broken_; }

 private:
  bool MapNext();
  void Unmap();

  const std::string path_;
  char* chunk_ = nullptr;
  std::size_t used_ = 0;          // of the chunk
  std::uint64_t file_bytes_ = 0;  // up to the end of the chunk
  bool is_broken_ = false;
};

}  // namespace ashlar::record

#endif  // ASHLAR_HOLLOW_RECORD_LOG_H_
