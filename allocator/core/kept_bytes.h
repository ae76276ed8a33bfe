// The contents of blocks while their pages are gone: first in memory of the host that the device copies fast to and
// from, then in a file without a name, which goes with the process.
//
//   KeptBytes kept(device, {.host_bytes = 6 * kGiB, .file_bytes = 2 * kGiB, .folder = "/scratch"});
//   absl::Status status = kept.Open();
//   status = kept.Save(block.address, block.size_bytes, stream);   // one behind the other; its place is saved_bytes()
//   status = kept.Finish();                                        // now the bytes are here
//   status = kept.Load(place, block.address, block.size_bytes, stream);
//   status = kept.Finish();                                        // and now there again
//
// Whoever wants to know how far it is (TellAfter) is told after each piece, when its bytes are there.
// A copy takes its place in its stream's work; Finish waits for the streams. Chunks of at most 64 MiB. Errors are one
// line: no file, no room in it, the device's own. Not thread-safe: the allocator's exclusive section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_KEPT_BYTES_H_
#define ASHLAR_ALLOCATOR_CORE_KEPT_BYTES_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "allocator/base/units.h"
#include "allocator/device/device.h"

namespace ashlar::core {

class KeptBytes {
 public:
  struct Room {
    std::uint64_t host_bytes = 0;
    std::uint64_t file_bytes = 0;  // beyond them
    std::string folder = {};       // "": TMPDIR, else /tmp
  };
  // The device outlives this.
  KeptBytes(device::Device& device, Room room) : device_(device), room_(std::move(room)) {}
  ~KeptBytes();
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;

  // From now on `told` is called after each piece that was copied, with its bytes; an empty one: nobody is.
  void TellAfter(std::function<void(std::uint64_t)> told) { told_ = std::move(told); }
  // Takes the room; what the host has no memory for is the file's.
  absl::Status Open();
  absl::Status Save(std::uint64_t address, std::uint64_t size_bytes, Stream stream);
  absl::Status Load(std::uint64_t place, std::uint64_t address, std::uint64_t size_bytes, Stream stream);
  absl::Status Finish();

  std::uint64_t saved_bytes() const { return saved_bytes_; }
  std::uint64_t host_bytes() const { return room_.host_bytes; }
  std::uint64_t file_bytes() const { return room_.file_bytes; }

 private:
  static constexpr std::uint64_t kChunkBytes = 64 * kMiB;
  static constexpr std::uint64_t kStagingBytes = 8 * kMiB;

  // A piece of what is kept that lies in one chunk, or goes through the file at once.
  struct Piece {
    std::uint64_t place = 0;  // in what is kept
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
  };
  absl::Status ForEachPiece(Piece whole, Stream stream, absl::FunctionRef<absl::Status(const Piece&)> copy);
  bool IsInFile(const Piece& piece) const { return piece.place >= room_.host_bytes; }
  char* HostPlace(const Piece& piece) const;
  absl::Status SaveToFile(const Piece& piece, Stream stream);
  absl::Status LoadFromFile(const Piece& piece, Stream stream);
  void TakeHostMemory();
  absl::Status OpenFile();
  absl::Status FileFailed(const char* call, int error) const;

  device::Device& device_;
  Room room_;
  std::vector<char*> chunks_;  // each of kChunkBytes but the last
  char* staging_ = nullptr;    // where what comes from or goes to the file stays until the device is done with it
  int file_ = -1;
  std::uint64_t saved_bytes_ = 0;
  std::set<Stream> streams_;  // with copies under way
  std::function<void(std::uint64_t)> told_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_KEPT_BYTES_H_
