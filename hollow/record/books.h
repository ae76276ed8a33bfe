// What a process holds of each device, by the file of the code that asked for it.
//
//   Books books;
//   books.Allocate({.device = 0, .bytes = 4096, .file = "/usr/lib/libnccl.so.2"}, 0x7f0000000000);
//   books.Of(0);   // {"/usr/lib/libnccl.so.2", {4096, 1}}
//
// Virtual memory counts where it is mapped. Sizes are bytes. Not thread-safe.
#ifndef ASHLAR_HOLLOW_RECORD_BOOKS_H_
#define ASHLAR_HOLLOW_RECORD_BOOKS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace ashlar::record {

class Books {
 public:
  struct Holding {
    int device = 0;  // -1: the host
    std::uint64_t bytes = 0;
    std::string_view file = {};  // which lasts
  };

  void Allocate(const Holding& holding, std::uint64_t address);
  // What was held there; nullopt: nothing.
  std::optional<Holding> Free(std::uint64_t address);
  void Create(const Holding& holding, std::uint64_t handle);
  // As much of what the handle stands for. Nothing where no such handle was created.
  void Map(std::uint64_t handle, std::uint64_t bytes, std::uint64_t address);
  // All that starts within.
  void Unmap(std::uint64_t address, std::uint64_t bytes);
  void Reset(int device);

  struct Held {
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
  };
  std::map<std::string_view, Held> Of(int device) const;

 private:
  std::map<std::uint64_t, Holding> by_address_;
  std::map<std::uint64_t, Holding> by_handle_;  // the last that had it
};

}  // namespace ashlar::record

#endif  // ASHLAR_HOLLOW_RECORD_BOOKS_H_
