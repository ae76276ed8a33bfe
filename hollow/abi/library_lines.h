// The text that says what each library holds of a device: a line "bytes blocks file" for each, "1048576 2
// libnccl.so.2".
//
//   LibraryLines lines(text, size);
//   lines.Add(1048576, 2, "libnccl.so.2");
//   return lines.used();   // bytes of `text`, without the final 0
//
// A line that does not fit whole is left out. Not thread-safe.
#ifndef ASHLAR_HOLLOW_ABI_LIBRARY_LINES_H_
#define ASHLAR_HOLLOW_ABI_LIBRARY_LINES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ashlar::hollow {

class LibraryLines {
 public:
  // `text` has room for `size` bytes, the final 0 among them.
  LibraryLines(char* text, std::size_t size) : text_(text), size_(size) {
    if (size_ > 0) text_[0] = '\0';
  }

  // `file` empty: not known.
  void Add(std::uint64_t bytes, std::uint64_t blocks, std::string_view file) {
    std::string line = std::to_string(bytes) + " " + std::to_string(blocks) + " " + std::string(file);
    std::replace(line.begin(), line.end(), '\n', '?');
    line += '\n';
    if (used_ + line.size() >= size_) return;
    std::memcpy(text_ + used_, line.c_str(), line.size() + 1);
    used_ += line.size();
  }
  std::size_t used() const { return used_; }

 private:
  char* text_;
  std::size_t size_;
  std::size_t used_ = 0;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_ABI_LIBRARY_LINES_H_
