// How ranks come to a meeting and leave it, and how nothing is left behind. The file's lock is held while a rank takes
// its seat and while one that leaves looks whether it is the last, so that no rank comes to a file that is being
// unlinked.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "hollow/books/rendezvous_layout.h"

namespace ashlar::hollow {
namespace {

constexpr char kPrefix[] = "ashlar-meeting-";
constexpr int kMostRanks = 4096;

std::mutex g_meetings_mutex;
std::vector<Meeting*>& Meetings() {
  static auto* meetings = new std::vector<Meeting*>;  // outlives every thread
  return *meetings;
}

// An open file under its lock, closed at the end; number is -1 where it cannot be had.
struct LockedFile {
  LockedFile(const char* path, int flags, int lock) : number(open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (number < 0) return;
    int locked;
    do locked = flock(number, lock);
    while (locked != 0 && errno == EINTR);
    if (locked != 0 || fstat(number, &about) != 0) Close();
  }
  ~LockedFile() { Close(); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  void Close() {
    const int error = errno;
    if (number >= 0) flock(number, LOCK_UN);  // a mapping keeps the file open, and with it the lock
    if (number >= 0) close(number);
    number = -1;
    errno = error;
  }
  int number;
  struct stat about = {};
};

bool Fail(std::string* why, const std::string& what, int error = 0) {
  *why = what + (error != 0 ? std::string(": ") + std::strerror(error) : "");
  return false;
}

}  // namespace

std::unique_ptr<Meeting> Meeting::Join(const Place& place, std::string* why) {
  if (place.ranks < 1 || place.ranks > kMostRanks || place.rank < 0 || place.rank >= place.ranks) {
    Fail(why, "rank " + std::to_string(place.rank) + " of " + std::to_string(place.ranks) +
                  " cannot meet: ranks count from 0, and at most " + std::to_string(kMostRanks) + " meet");
    return nullptr;
  }
  std::unique_ptr<Meeting> meeting(new Meeting(place));
  meeting->place_.room_bytes = RoundUpTo(place.room_bytes, kMeetingPage);
  if (!meeting->Open(why)) return nullptr;
  const std::lock_guard lock(g_meetings_mutex);
  static const int kHooked = std::atexit(&Meeting::LeaveAllAtExit);
  static_cast<void>(kHooked);
  Meetings().push_back(meeting.get());
  return meeting;
}

bool Meeting::Open(std::string* why) {
  const std::string folder = place_.folder.empty() ? "/dev/shm" : place_.folder;
  if (place_.folder.empty()) RemoveAbandoned(folder);
  path_ = folder + "/" + kPrefix + place_.name;
  bytes_ = Layout(place_.ranks).rooms + place_.ranks * place_.room_bytes;
  for (;;) {
    const LockedFile file(path_.c_str(), O_RDWR | O_CREAT, LOCK_EX);
    if (file.number < 0) return Fail(why, path_ + " cannot be opened", errno);
    if (file.about.st_nlink == 0) continue;  // the last to leave was quicker
    inode_ = file.about.st_ino;
    if (file.about.st_size < static_cast<off_t>(bytes_) && ftruncate(file.number, static_cast<off_t>(bytes_)) != 0) {
      return Fail(why, path_ + " cannot be made", errno);
    }
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.number, 0);
    if (at == MAP_FAILED) return Fail(why, path_ + " cannot be mapped", errno);
    at_ = static_cast<std::byte*>(at);
    return TakeSeat(why);
  }
}

// Under the file's lock.
bool Meeting::TakeSeat(std::string* why) {
  std::uint32_t ranks = 0;
  if (!head().ranks.compare_exchange_strong(ranks, place_.ranks) && ranks != static_cast<std::uint32_t>(place_.ranks)) {
    return Fail(why, "rank " + std::to_string(place_.rank) + " says that " + std::to_string(place_.ranks) +
                         " ranks meet, another says " + std::to_string(ranks));
  }
  std::uint64_t room = 0;
  if (!head().room_bytes.compare_exchange_strong(room, place_.room_bytes) && room != place_.room_bytes) {
    return Fail(why, "the ranks do not agree on the size of their room");
  }
  Seat& mine = seat(place_.rank);
  if (mine.state != Seat::kFree) {
    return Fail(why,
                "rank " + std::to_string(place_.rank) + " is taken by process " + std::to_string(mine.process.pid));
  }
  mine.process = ProcessId::Mine();
  std::snprintf(mine.about, sizeof mine.about, "%s", place_.about.c_str());
  mine.state = Seat::kTaken;
  pid_ = mine.process.pid;
  if (++head().came == static_cast<std::uint32_t>(place_.ranks)) unlink(path_.c_str());
  Tell();
  return true;
}

Meeting::~Meeting() {
  if (pid_ != 0 && pid_ == getpid()) {
    const std::lock_guard lock(g_meetings_mutex);
    std::erase(Meetings(), this);
    Leave();
  }
  if (at_ != nullptr) munmap(at_, bytes_);
}

void Meeting::Leave() {
  pid_ = 0;
  seat(place_.rank).state = Seat::kLeft;
  Tell();
  if (AllCame()) return;  // unlinked long ago
  const LockedFile file(path_.c_str(), O_RDWR, LOCK_EX);
  if (file.number < 0 || file.about.st_ino != inode_) return;
  if (!AnyoneThere(at_, bytes_)) unlink(path_.c_str());
}

void Meeting::LeaveAllAtExit() {
  const std::lock_guard lock(g_meetings_mutex);
  for (Meeting* meeting : Meetings()) {
    if (meeting->pid_ == getpid()) meeting->Leave();
  }
}

bool Meeting::AnyoneThere(const std::byte* at, std::size_t bytes) {
  if (bytes < kMeetingPage) return false;
  const std::uint64_t seats =
      std::min<std::uint64_t>(reinterpret_cast<const Head*>(at)->ranks, (bytes - kMeetingPage) / sizeof(Seat));
  const Seat* seat = reinterpret_cast<const Seat*>(at + kMeetingPage);
  return std::any_of(seat, seat + seats,
                     [](const Seat& one) { return one.state == Seat::kTaken && IsAlive(one.process); });
}

// Once in a process. Files of other users cannot be opened and stay.
void Meeting::RemoveAbandoned(const std::string& folder) {
  static std::once_flag once;
  std::call_once(once, [&folder] {
    DIR* entries = opendir(folder.c_str());
    if (entries == nullptr) return;
    while (const dirent* entry = readdir(entries)) {
      if (std::strncmp(entry->d_name, kPrefix, sizeof kPrefix - 1) != 0) continue;
      const std::string path = folder + "/" + entry->d_name;
      const LockedFile file(path.c_str(), O_RDWR, LOCK_EX | LOCK_NB);
      if (file.number < 0 || file.about.st_uid != geteuid()) continue;
      const std::size_t bytes = std::min<std::size_t>(file.about.st_size, std::size_t{1} << 20);  // all the seats
      void* at = bytes == 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number, 0);
      const bool kept = at != MAP_FAILED && AnyoneThere(static_cast<const std::byte*>(at), bytes);
      if (at != MAP_FAILED) munmap(at, bytes);
      if (!kept) unlink(path.c_str());
    }
    closedir(entries);
  });
}

}  // namespace ashlar::hollow
