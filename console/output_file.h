// A file that a command writes, piece by piece: the whole file anew, or the old one as it was.
//
//   absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open("run.trace");   // "-": standard output
//   (*file)->Append("a 1 512 0\n");
//   absl::Status status = (*file)->Commit();
//
// The first failure is kept, and Commit gives it back: Unavailable, "cannot write run.trace: No space left on device".
// Not thread-safe.
#ifndef ASHLAR_CONSOLE_OUTPUT_FILE_H_
#define ASHLAR_CONSOLE_OUTPUT_FILE_H_

#include <sys/stat.h>

#include <cstdio>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/base/byte_sink.h"

namespace ashlar::cli {

// A file that takes the place of another one whole or not at all: its bytes go to a name beside it, which is renamed at
// the end. Until then the old file is as it was; a failure, a full disk, SIGINT, SIGTERM and SIGHUP take the new name
// away again.
//
//   absl::StatusOr<PendingName> name = PendingName::Make("out.json");
//   Write(name->TakeDescriptor());                     // "./.out.json.1234-0", made and opened at once
//   if (absl::Status status = name->Commit(); !status.ok()) ...
//
// What is no regular file (a pipe, /dev/null) is written to as it is, and so is a file in a folder where no new one can
// be made. A pipe that nobody reads is an error: it is not waited for. Errors are Unavailable, "cannot write out.db: No
// space left on device". Not thread-safe; several names may be pending at once, on any threads.
class PendingName {
 public:
  // Makes the file beside it, empty, with the rights of the old one, and opens it.
  static absl::StatusOr<PendingName> Make(const std::string& target);

  PendingName(PendingName&& other) noexcept;
  PendingName& operator=(PendingName&&) = delete;
  ~PendingName();  // takes the file beside away, where it was not committed

  const std::string& path() const { return path_; }
  // The file open for writing, which the caller closes. Once.
  int TakeDescriptor();
  // Whether the name still is that of the file that was made: somebody may have put another, or a link, in its place.
  // For who must open it anew (SQLite); Commit asks as well.
  bool IsMine() const;
  bool is_in_place() const { return slot_ < 0; }
  absl::Status Commit();

 private:
  PendingName(std::string asked, std::string target, std::string path, int slot, int descriptor);
  static absl::StatusOr<PendingName> InPlace(const std::string& target);

  std::string asked_;   // as the caller names it
  std::string target_;  // the same without symbolic links
  std::string path_;
  int slot_;             // in the list that the handler of signals reads; below 0: written in place
  int descriptor_;       // below 0: taken
  struct stat made_ {};  // what was made
};

// "cannot write PATH: why", of errno.
absl::Status CannotWrite(const std::string& path);

class OutputFile : public ByteSink {
 public:
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(const std::string& path);
  ~OutputFile() override;

  void Append(absl::string_view bytes) override;
  // All bytes are in the file beside, which no failure of the disk can stop any more.
  absl::Status Close();
  // Once, at the end. Without it there is no new file.
  absl::Status Commit();

 private:
  OutputFile(std::string path, std::optional<PendingName> name, std::FILE* file);

  std::string path_;
  std::optional<PendingName> name_;  // nullopt: standard output
  std::FILE* file_;                  // nullptr: closed
  absl::Status status_;
};

// A file that a command writes, with the flag that names it; "": none.
struct NamedOutput {
  const char* flag;
  std::string path;
};

// InvalidArgument where an output is a file that the command reads, also through links or by another name: nothing was
// read yet. "-" among the inputs is standard input.
absl::Status NoInputIsWritten(absl::Span<const std::string> inputs, std::initializer_list<NamedOutput> outputs);

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_OUTPUT_FILE_H_
