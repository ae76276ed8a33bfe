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

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ashlar::record {

// One row of a log, made without memory of the heap: fields with a space between them, and a line end.
//
//   LogRow row('a');
//   row.Decimal(12).Hex(0x7f0000000000).Text("cudaMalloc");
//   log.Append(row.Finish());          // "a 12 0x7f0000000000 cudaMalloc\n"
//
// What does not fit into kMostBytes is left out.
class LogRow {
 public:
  static constexpr std::size_t kMostBytes = 8192;

  explicit LogRow(char kind) : used_(1) { bytes_[0] = kind; }

  LogRow& Decimal(std::int64_t value) { return Number(value, 10); }
  LogRow& Decimal(std::uint64_t value) { return Number(value, 10); }
  LogRow& Hex(std::uint64_t value) {
    Text("0x");
    used_ = static_cast<std::size_t>(std::to_chars(Next(), End(), value, 16).ptr - bytes_.data());
    return *this;
  }
  // A line end in it would end the row.
  LogRow& Text(std::string_view text) {
    Put(" ");
    const std::size_t start = used_;
    Put(text);
    std::replace(bytes_.data() + start, bytes_.data() + used_, '\n', '?');
    return *this;
  }
  std::string_view Finish() {
    bytes_[used_] = '\n';
    return {bytes_.data(), used_ + 1};
  }

 private:
  template <typename Value>
  LogRow& Number(Value value, int base) {
    Put(" ");
    used_ = static_cast<std::size_t>(std::to_chars(Next(), End(), value, base).ptr - bytes_.data());
    return *this;
  }
  char* Next() { return bytes_.data() + used_; }
  char* End() { return bytes_.data() + kMostBytes - 1; }
  void Put(std::string_view text) {
    const std::size_t bytes = std::min(text.size(), kMostBytes - 1 - used_);
    std::memcpy(Next(), text.data(), bytes);
    used_ += bytes;
  }

  std::array<char, kMostBytes> bytes_;
  std::size_t used_;
};

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
