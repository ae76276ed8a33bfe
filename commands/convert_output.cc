#include "commands/convert_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "commands/export/csv.h"
#include "commands/export/sqlite_tables.h"
#include "console/output_file.h"

namespace ashlar::cli {
namespace {

using answers::OutputFormat;
using exports::ExportFormat;
using Notes = std::vector<trace::Note>;

struct NamedFormat {
  ConvertFormat format;
  const char* name;        // of --to
  const char* endings[2];  // of files; nullptr: none more
};
// An ending stands before one that it ends in.
constexpr NamedFormat kConvertFormats[] = {
    {OutputFormat::kRecording, "ashlar", {".ashlar", nullptr}},
    {OutputFormat::kPickle, "pickle", {".pickle", ".pkl"}},
    {OutputFormat::kTrace, "trace", {".trace", ".txt"}},
    {ExportFormat::kEvents, "events", {".events.csv", nullptr}},
    {ExportFormat::kRmmLog, "rmm", {".rmm.csv", ".rmm"}},
    {OutputFormat::kCsv, "csv", {".csv", nullptr}},
    {ExportFormat::kPerfetto, "perfetto", {".perfetto-trace", ".pftrace"}},
    {ExportFormat::kSpeedscope, "speedscope", {".speedscope.json", nullptr}},
    {ExportFormat::kFolded, "folded", {".folded", nullptr}},
    {TableKind::kDatabase, "sqlite", {".sqlite", ".db"}},
    {TableKind::kFolder, "tables", {"/", nullptr}},
    {ExportFormat::kOpenMetrics, "openmetrics", {".prom", ".om"}},
};

bool EndsLike(const std::string& output, const NamedFormat& format) {
  for (const char* ending : format.endings) {
    if (ending != nullptr && absl::EndsWith(output, ending)) return true;
  }
  return false;
}

std::string ConvertEndings() {
  std::string out;
  for (const NamedFormat& format : kConvertFormats) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", format.endings[0]);
  }
  return out;
}

template <typename Write>
absl::StatusOr<Notes> ToStream(const std::string& output, Write write) {
  const absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(output);
  if (!file.ok()) return file.status();
  absl::StatusOr<Notes> notes = write(**file);
  if (!notes.ok()) return notes;
  if (absl::Status status = (*file)->Commit(); !status.ok()) return status;
  return notes;
}

absl::Status OfDatabase(const std::string& output, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("cannot write ", output, ": ", status.message()));
}

absl::StatusOr<Notes> ToDatabase(const answers::Input& input, const answers::ReplaySettings& settings,
                                 const std::string& output) {
  absl::StatusOr<PendingName> name = PendingName::Make(output);
  if (!name.ok()) return name.status();
  const absl::StatusOr<std::unique_ptr<exports::SqliteTables>> tables = exports::SqliteTables::Create(name->path());
  if (!tables.ok()) return OfDatabase(output, tables.status());
  if (!name->IsMine()) return OfDatabase(output, absl::UnavailableError("another file took the place of the new one"));
  absl::StatusOr<Notes> notes = exports::ExportTables(input, settings, **tables);
  if (!notes.ok()) return notes;
  absl::Status status = OfDatabase(output, (*tables)->Finish());
  if (status.ok()) status = name->Commit();
  if (!status.ok()) return status;
  return notes;
}

std::string TableFile(const std::string& folder, const exports::TableDefinition& table) {
  return absl::StrCat(folder, "/", table.name, ".csv");
}

// All files are whole before the first takes the place of an old one.
absl::StatusOr<Notes> ToFilesIn(const answers::Input& input, const answers::ReplaySettings& settings,
                                const std::string& folder) {
  std::vector<std::unique_ptr<OutputFile>> files;
  for (const exports::TableDefinition& table : exports::TableDefinitions()) {
    absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(TableFile(folder, table));
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  std::size_t next = 0;
  exports::CsvTables tables([&](const exports::TableDefinition&) -> ByteSink& { return *files[next++]; });
  absl::StatusOr<Notes> notes = exports::ExportTables(input, settings, tables);
  if (!notes.ok()) return notes;
  for (const std::unique_ptr<OutputFile>& file : files) {
    if (absl::Status status = file->Close(); !status.ok()) return status;
  }
  for (const std::unique_ptr<OutputFile>& file : files) {
    if (absl::Status status = file->Commit(); !status.ok()) return status;
  }
  return notes;
}

absl::StatusOr<Notes> ToFolder(const answers::Input& input, const answers::ReplaySettings& settings,
                               const std::string& output) {
  const bool is_new = mkdir(output.c_str(), 0777) == 0;
  if (!is_new && errno != EEXIST) return CannotWrite(output);
  absl::StatusOr<Notes> notes = ToFilesIn(input, settings, output);
  if (!notes.ok() && is_new) rmdir(output.c_str());
  return notes;
}

}  // namespace

std::string ConvertFormatNames() {
  std::string out;
  for (const NamedFormat& format : kConvertFormats) absl::StrAppend(&out, out.empty() ? "" : ", ", format.name);
  return out;
}

absl::StatusOr<ConvertFormat> FindConvertFormat(const std::string& output, const std::string& to) {
  for (const NamedFormat& format : kConvertFormats) {
    if (to.empty() ? EndsLike(output, format) : to == format.name) return format.format;
  }
  return absl::InvalidArgumentError(
      to.empty() ? absl::StrCat("the name ", output, " does not tell the format: end it in one of ", ConvertEndings(),
                                "; or give --to one of ", ConvertFormatNames())
                 : absl::StrCat("--to: '", to, "' is none of ", ConvertFormatNames()));
}

absl::Status KeepsInput(const ConvertFormat& format, const std::string& input, const std::string& output) {
  const TableKind* const tables = std::get_if<TableKind>(&format);
  if (tables == nullptr || *tables != TableKind::kFolder) return NoInputIsWritten({input}, {{"output", output}});
  absl::Status status;
  for (const exports::TableDefinition& table : exports::TableDefinitions()) {
    status.Update(NoInputIsWritten({input}, {{"output", TableFile(output, table)}}));
  }
  return status;
}

absl::StatusOr<Notes> WriteConverted(ConvertFormat format, answers::Input input,
                                     const answers::ReplaySettings& settings, const answers::CutRule& cut,
                                     const std::string& output) {
  if (const auto* own = std::get_if<OutputFormat>(&format)) {
    return ToStream(output, [&](ByteSink& out) { return answers::Convert(input, *own, settings, cut, out); });
  }
  const answers::Input run = answers::WithoutProblem(std::move(input));
  if (const auto* of_other = std::get_if<ExportFormat>(&format)) {
    return ToStream(output, [&](ByteSink& out) { return exports::Export(run, *of_other, settings, out); });
  }
  const bool is_database = std::get<TableKind>(format) == TableKind::kDatabase;
  if (output == "-") {
    return absl::OutOfRangeError(is_database ? "--to sqlite writes a file: give its name instead of -"
                                             : "--to tables writes a folder: give its name instead of -");
  }
  return is_database ? ToDatabase(run, settings, output) : ToFolder(run, settings, output);
}

}  // namespace ashlar::cli
