#include "commands/fleet/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace ashlar::fleet {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kEnding[] = ".jsonl";

// A journal's file by the place where it lies, whatever it was called.
std::string RealPath(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path : real.string();
}

std::string Dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A name that is no UTF-8 has its bytes in "file_hex" as well.
Json EntryOf(const char* kind, const FileStamp& file, const std::string& settings) {
  const std::string path = RealPath(file.path);
  Json out = {
      {"entry", kind}, {"file", path}, {"bytes", file.bytes}, {"mtime_ns", file.mtime_ns}, {"settings", settings}};
  if (Json::parse(Dumped(path)).get<std::string>() != path) out["file_hex"] = absl::BytesToHexString(path);
  return out;
}

// Entries by the real path.
struct Line {
  bool is_done = false;
  FileStamp file;
  std::string result;
};

// nullopt: cut off, or of other settings.
std::optional<Line> ReadLine(const std::string& text, const std::string& settings) {
  const Json entry = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!entry.is_object()) return std::nullopt;
  try {
    if (entry.at("settings").get<std::string>() != settings) return std::nullopt;
    Line out;
    out.is_done = entry.at("entry").get<std::string>() == "done";
    out.file = {entry.at("file").get<std::string>(), entry.at("bytes").get<std::uint64_t>(),
                entry.at("mtime_ns").get<std::int64_t>()};
    if (entry.contains("file_hex")) out.file.path = absl::HexStringToBytes(entry.at("file_hex").get<std::string>());
    if (out.is_done) out.result = Dumped(entry.at("result"));
    return out;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<FleetJournal> FleetJournal::Open(const std::string& folder, std::size_t process,
                                                const std::string& settings) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::string path = (fs::path(folder) / absl::StrCat("process-", process, kEnding)).string();
  const int file =
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);  // no pipe is waited for
  if (file < 0) return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  FleetJournal out(std::move(path), settings, file);
  // What a process that was lost had begun to write ends here.
  if (lseek(file, 0, SEEK_END) > 0) {
    if (absl::Status status = out.Append(""); !status.ok()) return status;
  }
  return out;
}

FleetJournal::~FleetJournal() {
  if (file_ >= 0) close(file_);
}

absl::Status FleetJournal::Begin(const FileStamp& file) { return Append(Dumped(EntryOf("begin", file, settings_))); }

absl::Status FleetJournal::Done(const FileStamp& file, const std::string& result) {
  std::string line = Dumped(EntryOf("done", file, settings_));
  line.pop_back();
  return Append(absl::StrCat(line, ",\"result\":", result, "}"));
}

absl::Status FleetJournal::Append(const std::string& line) const {
  const std::string text = line + "\n";
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(file_, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::UnavailableError(absl::StrCat("cannot write ", path_, ": ", std::strerror(errno)));
    at += static_cast<std::size_t>(written);
  }
  return absl::OkStatus();
}

absl::StatusOr<JournalEntries> ReadJournals(const std::string& folder, const std::string& settings) {
  JournalEntries out;
  std::error_code error;
  if (!fs::exists(folder, error)) return out;
  std::set<std::string> journals;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == kEnding) journals.insert(it->path().string());
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot read ", folder, ": ", error.message()));
  std::map<FileStamp, std::string> begun;
  for (const std::string& journal : journals) {
    if (fs::exists(journal, error) && !fs::is_regular_file(journal, error)) {
      return absl::UnavailableError(absl::StrCat("cannot read ", journal, ": it is no file"));
    }
    std::ifstream in(journal);
    if (!in) return absl::UnavailableError(absl::StrCat("cannot read ", journal, ": ", std::strerror(errno)));
    for (std::string text; std::getline(in, text);) {
      std::optional<Line> line = ReadLine(text, settings);
      if (!line.has_value()) continue;
      if (line->is_done) {
        out.done[line->file] = std::move(line->result);
      } else {
        begun[line->file] = fs::path(journal).stem().string();
      }
    }
  }
  for (const auto& [file, journal] : begun) {
    if (out.done.count(file) == 0) out.held.push_back({file.path, journal});
  }
  return out;
}

}  // namespace ashlar::fleet
