// A folder for what a program leaves: its own, and gone with whoever made it.
//
//   absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Make();
//   Use((*folder)->path());
#ifndef ASHLAR_LAUNCHER_RUN_FOLDER_H_
#define ASHLAR_LAUNCHER_RUN_FOLDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace ashlar::cli {

// In /dev/shm, else in TMPDIR or /tmp; gone with all that is in it when it is destroyed. What a launcher that was
// killed left goes with the next one, once its program has ended too: both hold the lock.
class RunFolder {
 public:
  static absl::StatusOr<std::unique_ptr<RunFolder>> Make();
  // On disk: in TMPDIR or /tmp.
  static absl::StatusOr<std::unique_ptr<RunFolder>> MakeOnDisk();
  // In the first of these places where one can be made. Its name begins with "ashlar-" and the kind.
  static absl::StatusOr<std::unique_ptr<RunFolder>> MakeIn(const std::vector<std::string>& places,
                                                           const std::string& kind = "");
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  int lock() const { return lock_; }  // its descriptor; -1 where there is none
  // In the new process, which holds the lock too: it ends with what the process becomes, or when that closes it.
  void HoldInProgram() const;
  // It stays, for good, and nobody holds it.
  void Leave();

 private:
  RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;  // held while the folder is in use
  bool is_left_ = false;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_RUN_FOLDER_H_
