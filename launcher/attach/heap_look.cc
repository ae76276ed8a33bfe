#include "launcher/attach/heap_look.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace ashlar::cli {
namespace {

namespace files = std::filesystem;

constexpr const char* kAnswer = "/answer.json";
constexpr const char* kLine = "line.py";

std::string RootOf(std::int64_t pid) { return absl::StrCat("/proc/", pid, "/root"); }

absl::StatusOr<std::unique_ptr<RunFolder>> MakeFolder(std::int64_t pid) {
  std::vector<std::string> places = {"/tmp", "/var/tmp", "/dev/shm"};
  for (std::string& place : places) place.insert(0, RootOf(pid));
  return RunFolder::MakeIn(places, "attach-");
}

// Where the process is another user's, its files are too.
void GiveToOwner(const struct stat& owner, const std::string& path) {
  if (geteuid() == 0) static_cast<void>(lchown(path.c_str(), owner.st_uid, owner.st_gid) == 0);
}

// Runs what lies in the folder without a name of its own in the program's __main__; nothing comes out. A file that is
// not closed would be warned of there.
std::string LineThatRuns(const std::string& file) {
  const std::string path = nlohmann::json(file).dump();  // quoted as Python quotes
  return absl::StrCat("try:\n exec(compile((lambda file: (file.read(), file.close()))(__import__('io').open(", path,
                      "))[0], ", path, ", 'exec'), {'__name__': 'ashlar_attached', '__file__': ", path,
                      "})\nexcept BaseException:\n pass\n");
}

}  // namespace

absl::StatusOr<HeapLook> HeapLook::Begin(PythonProcess& process, const HeapLookOptions& options,
                                         const std::string& python_folder) {
  absl::StatusOr<std::unique_ptr<RunFolder>> folder = MakeFolder(process.pid());
  if (!folder.ok()) {
    return absl::UnavailableError(absl::StrCat("process ", process.pid(), ": ", folder.status().message()));
  }
  const std::string path = (*folder)->path();
  HeapLook out(process, *std::move(folder));
  if (absl::Status status = out.Fill(options, python_folder); !status.ok()) return status;
  const std::string seen_there = path.substr(RootOf(process.pid()).size());
  const std::string line = LineThatRuns(seen_there + "/attached.py");
  std::ofstream(absl::StrCat(path, "/", kLine)) << line;
  if (absl::Status status = process.Queue(line, absl::StrCat(seen_there, "/", kLine)); !status.ok()) return status;
  return out;
}

absl::Status HeapLook::Fill(const HeapLookOptions& options, const std::string& python_folder) const {
  const std::string from = python_folder + "/ashlar_hollow/";
  std::error_code error;
  for (const char* part : {"attached.py", "observer.py", "holders"}) {
    files::copy(from + part, absl::StrCat(folder_->path(), "/", part), files::copy_options::recursive, error);
    if (error) return absl::NotFoundError(absl::StrCat(from, part, ": ", error.message()));
  }
  std::ofstream(folder_->path() + "/request.json")
      << nlohmann::json{{"seconds", options.seconds}, {"redacts", options.redacts}};
  struct stat owner {};
  if (stat(absl::StrCat("/proc/", process_->pid()).c_str(), &owner) != 0) return absl::OkStatus();
  GiveToOwner(owner, folder_->path());
  for (const auto& one : files::recursive_directory_iterator(folder_->path(), error)) GiveToOwner(owner, one.path());
  return absl::OkStatus();
}

HeapLook::~HeapLook() {
  if (folder_ == nullptr) return;
  const bool has_answered = HasAnswered();
  if (process_->WillReadFile(has_answered)) {  // else a line that has not run finds nothing
    std::error_code error;
    for (const auto& one : files::directory_iterator(folder_->path(), error)) {
      if (one.path().filename() != kLine) files::remove_all(one.path(), error);
    }
    folder_->Leave();
  }
  folder_.reset();
  process_->LetGo(has_answered);
}

bool HeapLook::HasAnswered() const { return access((folder_->path() + kAnswer).c_str(), F_OK) == 0; }

absl::Status HeapLook::Take() const {
  std::ifstream in(folder_->path() + kAnswer);
  const nlohmann::json answer = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("error") && answer["error"].is_string()) {
    return absl::UnavailableError(absl::StrCat("process ", process_->pid(), ": ", answer["error"].get<std::string>()));
  }
  return absl::OkStatus();
}

}  // namespace ashlar::cli
