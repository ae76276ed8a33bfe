// A look at a process that was not started under us: PyTorch's snapshot of now with who holds the memory by name, taken
// by the process itself (hollow/python/ashlar_hollow/attached.py).
//
//   absl::StatusOr<HeapLook> look = HeapLook::Begin(process, {.seconds = 10}, python_folder);
//   while (!look->HasAnswered() && ...) look->Wait();
//   absl::Status status = look->Take();          // look->snapshot() is a file then
//
// Its files lie in a folder of the process's own /tmp, and go with the object.
#ifndef ASHLAR_LAUNCHER_ATTACH_HEAP_LOOK_H_
#define ASHLAR_LAUNCHER_ATTACH_HEAP_LOOK_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/attach/python_process.h"
#include "launcher/run_folder.h"

namespace ashlar::cli {

struct HeapLookOptions {
  double seconds = 10;  // of the walk, at most
  bool redacts = false;
};

class HeapLook {
 public:
  // `python_folder`: that with ashlar_hollow in it. The process goes on with what it does.
  static absl::StatusOr<HeapLook> Begin(PythonProcess& process, const HeapLookOptions& options,
                                        const std::string& python_folder);
  ~HeapLook();
  HeapLook(HeapLook&& other) = default;
  HeapLook(const HeapLook&) = delete;
  HeapLook& operator=(const HeapLook&) = delete;

  bool HasAnswered() const;
  // Unavailable, in the process's own words, where it could not say.
  absl::Status Take() const;
  std::string snapshot() const { return folder_->path() + "/look.pickle"; }

 private:
  HeapLook(PythonProcess& process, std::unique_ptr<RunFolder> folder)
      : process_(&process), folder_(std::move(folder)) {}
  absl::Status Fill(const HeapLookOptions& options, const std::string& python_folder) const;

  PythonProcess* process_;
  std::unique_ptr<RunFolder> folder_;  // as this process sees it
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_ATTACH_HEAP_LOOK_H_
