#include "analyzer/cli/output_file.h"

#include <utility>

namespace ashlar::cli {

OutputFile::OutputFile(std::string path, std::optional<PendingName> name, std::FILE* file)
    : path_(std::move(path)), name_(std::move(name)), file_(file) {}

OutputFile::~OutputFile() {
  if (file_ != nullptr && name_.has_value()) std::fclose(file_);
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(const std::string& path) {
  if (path == "-") return std::unique_ptr<OutputFile>(new OutputFile("standard output", std::nullopt, stdout));
  absl::StatusOr<PendingName> name = PendingName::Make(path);
  if (!name.ok()) return name.status();
  std::FILE* const file = std::fopen(name->path().c_str(), "wbe");
  if (file == nullptr) return CannotWrite(path);
  return std::unique_ptr<OutputFile>(new OutputFile(path, *std::move(name), file));
}

void OutputFile::Append(absl::string_view bytes) {
  if (!status_.ok()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) status_ = CannotWrite(path_);
}

absl::Status OutputFile::Commit() {
  if (std::fflush(file_) != 0) status_.Update(CannotWrite(path_));
  std::FILE* const file = std::exchange(file_, nullptr);
  if (!name_.has_value()) return status_;
  if (std::fclose(file) != 0) status_.Update(CannotWrite(path_));
  if (status_.ok()) status_ = name_->Commit();
  name_.reset();
  return status_;
}

}  // namespace ashlar::cli
