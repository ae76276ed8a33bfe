#include "hollow/model/rendezvous.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14, <linux/mman.h>
#endif

namespace ashlar::hollow {
namespace {
constexpr std::uint64_t kKeepFilled = 256 << 10;  // memory that a rank keeps when all has been heard
}  // namespace

// --- Who is there ---------------------------------------------------------------------------------------------------

bool Meeting::AllCame() const { return head().came == static_cast<std::uint32_t>(place_.ranks); }
bool Meeting::Came(int rank) const { return slot(rank).state != RankSlot::kFree; }
bool Meeting::Gone(int rank) const {
  const std::uint32_t state = slot(rank).state;
  return state == RankSlot::kLeft || (state == RankSlot::kTaken && !IsAlive(slot(rank).process));
}
bool Meeting::Left(int rank) const { return slot(rank).state == RankSlot::kLeft; }
std::string Meeting::About(int rank) const { return Came(rank) ? slot(rank).about : ""; }
int Meeting::Pid(int rank) const { return Came(rank) ? slot(rank).process.pid : 0; }

// --- The room of this rank ------------------------------------------------------------------------------------------

std::uint64_t Meeting::HeardByAll() const {
  std::uint64_t least = UINT64_MAX;
  for (int rank = 0; rank < place_.ranks; ++rank) {
    if (slot(rank).state != RankSlot::kLeft) least = std::min(least, slot(rank).heard.load(std::memory_order_acquire));
  }
  return least;
}

// Forgets what has been heard by all that it was for.
void Meeting::Reclaim() {
  const std::uint64_t heard = HeardByAll();
  std::erase_if(blocks_, [this, heard](const auto& entry) {
    const Block& block = entry.second;
    if (block.to < 0) return block.number < heard;
    return block.number < pair(place_.rank, block.to).taken.load(std::memory_order_acquire) || Left(block.to);
  });
  if (blocks_.empty() && filled_ > kKeepFilled) {
    madvise(room(place_.rank) + kKeepFilled, filled_ - kKeepFilled, MADV_REMOVE);
    filled_ = kKeepFilled;
  }
}

// Finds the lowest place for so many bytes and copies them there.
Meeting::Sent Meeting::Put(Call& call, const Note& note, const void* data, std::uint64_t bytes, Block block) {
  call.note = note;
  call.bytes = bytes;
  call.offset = 0;
  if (bytes == 0) return Sent::kYes;
  Reclaim();
  std::uint64_t at = 0;
  for (const auto& [begin, other] : blocks_) {
    if (at + bytes <= begin) break;
    at = RoundUpTo(other.end, 64);
  }
  if (at + bytes > place_.room_bytes) return Sent::kFull;
  const std::uint64_t end = RoundUpTo(at + bytes, kMeetingPage);
  if (end > filled_) {
    // Memory that cannot be had is told here and not by a signal at the copy. An older kernel does not know how
    // (EINVAL).
    if (madvise(room(place_.rank) + filled_, end - filled_, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
      return Sent::kNoMemory;
    }
    filled_ = end;
  }
  std::memcpy(room(place_.rank) + at, data, bytes);
  block.end = at + bytes;
  blocks_.emplace(at, block);
  call.offset = at;
  return Sent::kYes;
}

// --- To all ---------------------------------------------------------------------------------------------------------

Meeting::Sent Meeting::Say(const Note& note, const void* data, std::uint64_t bytes) {
  if (said_ >= HeardByAll() + kMeetingCalls) return Sent::kFull;
  const Sent sent = Put(call(place_.rank, said_), note, data, bytes, {.to = -1, .number = said_});
  if (sent != Sent::kYes) return sent;
  slot(place_.rank).said.store(++said_, std::memory_order_release);
  Tell();
  return sent;
}

std::uint64_t Meeting::SaidBy(int rank) const { return slot(rank).said.load(std::memory_order_acquire); }

std::optional<Heard> Meeting::Hear(int rank, std::uint64_t number) const {
  if (SaidBy(rank) <= number) return std::nullopt;
  const Call& said = call(rank, number);
  return Heard{said.note, said.bytes == 0 ? nullptr : room(rank) + said.offset, said.bytes};
}

void Meeting::Done(std::uint64_t number) { slot(place_.rank).heard.store(number + 1, std::memory_order_release); }

// --- From one to another --------------------------------------------------------------------------------------------

Meeting::Sent Meeting::Send(int to, const Note& note, const void* data, std::uint64_t bytes) {
  Pair& row = pair(place_.rank, to);
  const std::uint64_t number = row.sent.load(std::memory_order_relaxed);
  if (number >= row.taken.load(std::memory_order_acquire) + kMeetingMessages) return Sent::kFull;
  const Sent sent = Put(row.messages[number % kMeetingMessages], note, data, bytes, {.to = to, .number = number});
  if (sent != Sent::kYes) return sent;
  row.sent.store(number + 1, std::memory_order_release);
  Tell();
  return sent;
}

std::optional<Heard> Meeting::Next(int from) const {
  const Pair& row = pair(from, place_.rank);
  const std::uint64_t number = row.taken.load(std::memory_order_relaxed);
  if (row.sent.load(std::memory_order_acquire) <= number) return std::nullopt;
  const Call& message = row.messages[number % kMeetingMessages];
  return Heard{message.note, message.bytes == 0 ? nullptr : room(from) + message.offset, message.bytes};
}

void Meeting::Take(int from) { pair(from, place_.rank).taken.fetch_add(1, std::memory_order_release); }

// --- Waiting --------------------------------------------------------------------------------------------------------

std::uint32_t Meeting::News() const { return head().news; }

void Meeting::Tell() {
  ++head().news;
  if (head().waiting != 0) syscall(SYS_futex, &head().news, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Meeting::WaitForNews(std::uint32_t seen, std::chrono::milliseconds most) const {
  const timespec time{.tv_sec = most.count() / 1000, .tv_nsec = most.count() % 1000 * 1'000'000};
  ++head().waiting;
  syscall(SYS_futex, &head().news, FUTEX_WAIT, seen, &time, nullptr, 0);
  --head().waiting;
}

Deadline InSeconds(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

double MeetingTimeoutSeconds() {
  const char* text = std::getenv("ASHLAR_HOLLOW_TIMEOUT");
  const double seconds = text == nullptr ? 0 : std::strtod(text, nullptr);
  return seconds > 0 ? std::min(seconds, 1e9) : 600;
}

std::string NameOf(const Meeting& meeting, int rank) {
  std::string name = "rank " + std::to_string(rank);
  if (!meeting.Came(rank)) return name + " has not come";
  name += " (pid " + std::to_string(meeting.Pid(rank)) + ")";
  if (meeting.Left(rank)) return name + " left";
  return meeting.Gone(rank) ? name + " died" : name + " has not called";
}

std::string WhoLacks(const Meeting& meeting, std::uint64_t number) {
  std::string who;
  for (int rank = 0; rank < meeting.ranks(); ++rank) {
    if (meeting.SaidBy(rank) >= number) continue;
    who += (who.empty() ? "" : ", ") + NameOf(meeting, rank);
  }
  return who;
}

std::optional<std::vector<std::string>> Exchange(Meeting& meeting, const std::string& data, Deadline deadline,
                                                 std::string* why) {
  constexpr std::chrono::milliseconds kLook{100};  // for the dead, who bring no news
  const std::uint64_t number = meeting.said();
  Meeting::Sent sent;
  while ((sent = meeting.Say({}, data.data(), data.size())) == Meeting::Sent::kFull &&
         Deadline::clock::now() < deadline) {
    meeting.WaitForNews(meeting.News(), std::chrono::milliseconds(1));
  }
  if (sent != Meeting::Sent::kYes) {
    *why = sent == Meeting::Sent::kFull ? "the room of this rank stays full"
                                        : "there is no memory in the meeting's folder";
    return std::nullopt;
  }
  for (int rank = 0; rank < meeting.ranks();) {
    const std::uint32_t news = meeting.News();
    if (meeting.SaidBy(rank) > number) {
      ++rank;
      continue;
    }
    const bool gone = meeting.Gone(rank);
    if (meeting.SaidBy(rank) > number) continue;  // just before it went
    if (gone || Deadline::clock::now() >= deadline) {
      *why = WhoLacks(meeting, number + 1);
      return std::nullopt;
    }
    meeting.WaitForNews(news, kLook);
  }
  std::vector<std::string> all;
  for (int rank = 0; rank < meeting.ranks(); ++rank) {
    const Heard heard = *meeting.Hear(rank, number);
    all.emplace_back(static_cast<const char*>(heard.data), heard.bytes);
  }
  meeting.Done(number);
  return all;
}

// How ranks come to a meeting and leave it, and how nothing is left behind. The file's lock is held while a rank takes
// its slot and while one that leaves looks whether it is the last, so that no rank comes to a file that is being
// unlinked.

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
    return TakeRank(why);
  }
}

// Under the file's lock.
bool Meeting::TakeRank(std::string* why) {
  std::uint32_t ranks = 0;
  if (!head().ranks.compare_exchange_strong(ranks, place_.ranks) && ranks != static_cast<std::uint32_t>(place_.ranks)) {
    return Fail(why, "rank " + std::to_string(place_.rank) + " says that " + std::to_string(place_.ranks) +
                         " ranks meet, another says " + std::to_string(ranks));
  }
  std::uint64_t room = 0;
  if (!head().room_bytes.compare_exchange_strong(room, place_.room_bytes) && room != place_.room_bytes) {
    return Fail(why, "the ranks do not agree on the size of their room");
  }
  RankSlot& mine = slot(place_.rank);
  if (mine.state != RankSlot::kFree) {
    return Fail(why,
                "rank " + std::to_string(place_.rank) + " is taken by process " + std::to_string(mine.process.pid));
  }
  mine.process = ProcessId::Mine();
  std::snprintf(mine.about, sizeof mine.about, "%s", place_.about.c_str());
  mine.state = RankSlot::kTaken;
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
  slot(place_.rank).state = RankSlot::kLeft;
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
  const std::uint64_t slots =
      std::min<std::uint64_t>(reinterpret_cast<const Head*>(at)->ranks, (bytes - kMeetingPage) / sizeof(RankSlot));
  const RankSlot* slot = reinterpret_cast<const RankSlot*>(at + kMeetingPage);
  return std::any_of(slot, slot + slots,
                     [](const RankSlot& one) { return one.state == RankSlot::kTaken && IsAlive(one.process); });
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
      const std::size_t bytes = std::min<std::size_t>(file.about.st_size, std::size_t{1} << 20);  // all the slots
      void* at = bytes == 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number, 0);
      const bool kept = at != MAP_FAILED && AnyoneThere(static_cast<const std::byte*>(at), bytes);
      if (at != MAP_FAILED) munmap(at, bytes);
      if (!kept) unlink(path.c_str());
    }
    closedir(entries);
  });
}

}  // namespace ashlar::hollow
