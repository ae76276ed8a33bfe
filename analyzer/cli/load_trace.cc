#include "analyzer/cli/load_trace.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/cli/memory_end.h"
#include "analyzer/readers/input_file.h"
#include "analyzer/readers/sniff.h"

namespace ashlar::cli {
namespace {

absl::Status FlagsFit(absl::string_view bytes, const ReplayFlags& flags) {
  if (readers::Sniff(bytes) == readers::InputKind::kPlainTrace) return NoSnapshotFlags(flags);
  const char* wrong = flags.conf.has_value()              ? "--conf"
                      : !flags.capacity.empty()           ? "--capacity"
                      : flags.memory_fraction.has_value() ? "--memory-fraction"
                      : !flags.segment_addresses.empty()  ? "--segment-addresses"
                                                          : nullptr;
  if (wrong == nullptr) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(wrong, " needs a request trace: a snapshot is taken as it was recorded"));
}

// Of the file as it lies there; 0 where that is not known.
std::uint64_t StoredBytes(const std::string& input) {
  std::error_code error;
  const std::uintmax_t size = input == "-" ? 0 : std::filesystem::file_size(input, error);
  return error ? 0 : static_cast<std::uint64_t>(size);
}

}  // namespace

absl::StatusOr<std::string> LoadBytes(const std::string& input, const report::ExplainOptions& options) {
  report::Tell(options, absl::StrCat("reading ", input));
  ExpectMemoryFor(input, StoredBytes(input));
  absl::StatusOr<std::string> bytes = readers::ReadInput(input);
  if (bytes.ok()) ExpectMemoryFor(input, absl::string_view(*bytes));
  return bytes;
}

report::ExplainOptions NamingProgress(const std::string& input, report::ExplainOptions options) {
  if (!options.progress) return options;
  const std::string name = input.substr(input.find_last_of('/') + 1);
  options.progress = [name, progress = std::move(options.progress)](const std::string& stage) {
    progress(absl::StrCat(name, ": ", stage));
  };
  return options;
}

absl::StatusOr<report::TracedRun> TraceOf(const std::string& input, absl::string_view bytes, const ReplayFlags& flags,
                                          const report::ExplainOptions& options) {
  const auto named = [&input](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(input, ": ", status.message()));
  };
  if (absl::Status status = FlagsFit(bytes, flags); !status.ok()) return named(status);
  absl::StatusOr<report::TracedRun> run = report::TraceBytes(bytes, NamingProgress(input, options));
  if (!run.ok()) return named(run.status());
  return run;
}

absl::StatusOr<report::TracedRun> LoadTrace(const std::string& input, const ReplayFlags& flags,
                                            const report::ExplainOptions& options) {
  const absl::StatusOr<std::string> bytes = LoadBytes(input, options);
  if (!bytes.ok()) return bytes.status();
  return TraceOf(input, *bytes, flags, options);
}

absl::StatusOr<std::vector<report::TracedRun>> LoadDevices(const std::string& input, const ReplayFlags& flags,
                                                           const report::ExplainOptions& options) {
  const absl::StatusOr<std::string> bytes = LoadBytes(input, options);
  if (!bytes.ok()) return bytes.status();
  absl::Status status = FlagsFit(*bytes, flags);
  if (status.ok()) {
    absl::StatusOr<std::vector<report::TracedRun>> runs = report::TraceDevices(*bytes, NamingProgress(input, options));
    if (runs.ok()) return runs;
    status = runs.status();
  }
  return absl::Status(status.code(), absl::StrCat(input, ": ", status.message()));
}

int FailLoad(const absl::Status& status) {
  return Fail(status.code() == absl::StatusCode::kOutOfRange ? kUsage : kUnreadable, status);
}

}  // namespace ashlar::cli
