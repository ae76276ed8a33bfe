#include "launcher/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

void RemoveFolder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

constexpr char kFolderPrefix[] = "ashlar-";
constexpr int kLockInProgram = 200;  // the least file number of the lock there: out of the way of what programs choose
constexpr std::time_t kYoungSeconds = 60;  // a folder of this age may not be locked yet

std::string LockIn(const std::string& folder) { return folder + "/lock"; }

// The lock on a run folder, which this process holds until its end; -1 where it is another's, or where there is none.
// By the file that is locked a folder is known as ours: others name theirs "ashlar-..." too.
int LockFolder(const std::string& path, int creates = 0) {
  const int lock = open(LockIn(path).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | creates, 0600);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  close(lock);
  return -1;
}

// What a launcher that was killed left: folders of this user that nobody holds any more.
void RemoveAbandoned(const std::string& place) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(place, ignored)) {
    const std::string path = entry.path().string();
    struct stat facts {};
    const bool is_ours = entry.path().filename().string().rfind(kFolderPrefix, 0) == 0 &&
                         lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
                         (facts.st_mode & 0777) == 0700 && std::time(nullptr) - facts.st_mtime > kYoungSeconds;
    const int lock = is_ours ? LockFolder(path) : -1;
    if (lock < 0) continue;
    RemoveFolder(path);
    close(lock);
  }
}

std::string OnDisk() {
  const char* temporary = std::getenv("TMPDIR");
  return temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Make() { return MakeIn({"/dev/shm", OnDisk()}); }
absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::MakeOnDisk() { return MakeIn({OnDisk()}); }

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::MakeIn(const std::vector<std::string>& places,
                                                             const std::string& kind) {
  std::string why;
  for (const std::string& place : places) {
    RemoveAbandoned(place);
    std::string path = absl::StrCat(place, "/", kFolderPrefix, kind, "XXXXXX");
    if (mkdtemp(path.data()) != nullptr) {
      return std::unique_ptr<RunFolder>(new RunFolder(path, LockFolder(path, O_CREAT)));
    }
    why = absl::StrCat("cannot make a folder in ", place, ": ", std::strerror(errno));
  }
  return absl::UnavailableError(why);
}

void RunFolder::HoldInProgram() const {
  if (lock_ >= 0) fcntl(lock_, F_DUPFD, kLockInProgram);
}

void RunFolder::Leave() {
  is_left_ = true;
  unlink(LockIn(path_).c_str());
}

RunFolder::~RunFolder() {
  if (!is_left_) RemoveFolder(path_);
  if (lock_ >= 0) close(lock_);
}

}  // namespace ashlar::cli
