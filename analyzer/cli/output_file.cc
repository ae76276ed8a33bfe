#include "analyzer/cli/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

bool IsSameFile(const std::string& input, const struct stat& output) {
  struct stat found {};
  const int code = input == "-" ? fstat(STDIN_FILENO, &found) : stat(input.c_str(), &found);
  return code == 0 && found.st_dev == output.st_dev && found.st_ino == output.st_ino;
}

}  // namespace

OutputFile::OutputFile(std::string path, std::optional<PendingName> name, std::FILE* file)
    : path_(std::move(path)), name_(std::move(name)), file_(file) {}

OutputFile::~OutputFile() {
  if (file_ != nullptr && name_.has_value()) std::fclose(file_);
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(const std::string& path) {
  if (path == "-") return std::unique_ptr<OutputFile>(new OutputFile("standard output", std::nullopt, stdout));
  absl::StatusOr<PendingName> name = PendingName::Make(path);
  if (!name.ok()) return name.status();
  const int descriptor = name->TakeDescriptor();
  std::FILE* const file = fdopen(descriptor, "wb");
  if (file == nullptr) {
    close(descriptor);
    return CannotWrite(path);
  }
  return std::unique_ptr<OutputFile>(new OutputFile(path, *std::move(name), file));
}

void OutputFile::Append(absl::string_view bytes) {
  if (!status_.ok()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) status_ = CannotWrite(path_);
}

absl::Status OutputFile::Close() {
  if (file_ == nullptr) return status_;
  if (std::fflush(file_) != 0) status_.Update(CannotWrite(path_));
  std::FILE* const file = std::exchange(file_, nullptr);
  if (name_.has_value() && std::fclose(file) != 0) status_.Update(CannotWrite(path_));
  return status_;
}

absl::Status OutputFile::Commit() {
  status_ = Close();
  if (!name_.has_value()) return status_;
  if (status_.ok()) status_ = name_->Commit();
  name_.reset();
  return status_;
}

absl::Status NoInputIsWritten(absl::Span<const std::string> inputs, std::initializer_list<NamedOutput> outputs) {
  for (const NamedOutput& output : outputs) {
    struct stat old {};
    if (output.path.empty() || output.path == "-" || stat(output.path.c_str(), &old) != 0) continue;
    if (!S_ISREG(old.st_mode)) continue;
    for (const std::string& input : inputs) {
      if (!IsSameFile(input, old)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(output.flag, ": ", output.path, " is an input too and would be lost: write to another file"));
    }
  }
  return absl::OkStatus();
}

}  // namespace ashlar::cli
