#include "launcher/attach/heap_look.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace ashlar::cli {
namespace {

namespace files = std::filesystem;

constexpr const char* kAnswer = "/answer.json";
constexpr const char* kLine = "line.py";

std::string RootOf(std::int64_t pid) { return absl::StrCat("/proc/", pid, "/root"); }

absl::StatusOr<std::string> MakeFolder(std::int64_t pid) {
  for (const char* place : {"/tmp", "/var/tmp", "/dev/shm"}) {
    std::string folder = absl::StrCat(RootOf(pid), place, "/ashlar-attach-XXXXXX");
    if (mkdtemp(folder.data()) != nullptr) return folder;
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("process ", pid, ": no folder for its answer in its /tmp"));
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
  const absl::StatusOr<std::string> folder = MakeFolder(process.pid());
  if (!folder.ok()) return folder.status();
  HeapLook out(process, *folder);
  if (absl::Status status = out.Fill(options, python_folder); !status.ok()) return status;
  const std::string seen_there = folder->substr(RootOf(process.pid()).size());
  const std::string line = LineThatRuns(seen_there + "/attached.py");
  std::ofstream(absl::StrCat(*folder, "/", kLine)) << line;
  if (absl::Status status = process.Queue(line, absl::StrCat(seen_there, "/", kLine)); !status.ok()) return status;
  return out;
}

absl::Status HeapLook::Fill(const HeapLookOptions& options, const std::string& python_folder) const {
  const std::string from = python_folder + "/ashlar_hollow/";
  std::error_code error;
  for (const char* part : {"attached.py", "observer.py", "holders"}) {
    files::copy(from + part, absl::StrCat(folder_, "/", part), files::copy_options::recursive, error);
    if (error) return absl::NotFoundError(absl::StrCat(from, part, ": ", error.message()));
  }
  std::ofstream(folder_ + "/request.json")
      << nlohmann::json{{"seconds", options.seconds}, {"redacts", options.redacts}};
  struct stat owner {};
  if (stat(absl::StrCat("/proc/", process_->pid()).c_str(), &owner) != 0) return absl::OkStatus();
  GiveToOwner(owner, folder_);
  for (const auto& one : files::recursive_directory_iterator(folder_, error)) GiveToOwner(owner, one.path());
  return absl::OkStatus();
}

HeapLook::HeapLook(HeapLook&& other) noexcept : process_(other.process_), folder_(std::exchange(other.folder_, "")) {}

HeapLook::~HeapLook() {
  if (folder_.empty()) return;
  const bool has_answered = HasAnswered();
  std::error_code error;
  if (process_->WillReadFile(has_answered)) {
    for (const auto& one : files::directory_iterator(folder_, error)) {
      if (one.path().filename() != kLine) files::remove_all(one.path(), error);
    }
  } else {
    files::remove_all(folder_, error);  // a line that has not run finds nothing then
  }
  process_->LetGo(has_answered);
}

bool HeapLook::HasAnswered() const { return access((folder_ + kAnswer).c_str(), F_OK) == 0; }

absl::Status HeapLook::Take() const {
  std::ifstream in(folder_ + kAnswer);
  const nlohmann::json answer = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("error") && answer["error"].is_string()) {
    return absl::UnavailableError(absl::StrCat("process ", process_->pid(), ": ", answer["error"].get<std::string>()));
  }
  return absl::OkStatus();
}

}  // namespace ashlar::cli
