// A file that a command writes, piece by piece: the whole file anew, or the old one as it was (pending_name.h).
//
//   absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open("run.trace");   // "-": standard output
//   (*file)->Append("a 1 512 0\n");
//   absl::Status status = (*file)->Commit();
//
// The first failure is kept, and Commit gives it back: Unavailable, "cannot write run.trace: No space left on device".
// Not thread-safe.
#ifndef ASHLAR_ANALYZER_CLI_OUTPUT_FILE_H_
#define ASHLAR_ANALYZER_CLI_OUTPUT_FILE_H_

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
#include "analyzer/cli/pending_name.h"

namespace ashlar::cli {

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

#endif  // ASHLAR_ANALYZER_CLI_OUTPUT_FILE_H_
