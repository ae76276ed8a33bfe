// A meeting of ranks: processes, or threads of one, that agree on a name and a number of slots and then hear each
// other.
//
//   Meeting::Place place{.folder = "/dev/shm/ashlar-x", .name = "a1b2", .ranks = 4, .rank = 0};
//   std::string why;
//   std::unique_ptr<Meeting> meeting = Meeting::Join(place, &why);      // does not wait
//   auto all = Exchange(*meeting, "my data", Deadline(600), &why);      // a barrier: waits until every rank has said
//   something for (const std::string& of_rank : *all) ...
//
// What it carries. A rank says a numbered row of things that all hear, and sends to each single rank a row of messages.
// Each has a note of eight numbers and up to `room_bytes / 2` bytes of data. To say or to send never waits: it puts a
// copy where the others look. Only where 1024 things have not been heard by somebody (256 messages by the one), or the
// room is used up, is it refused with kFull until they are. So to wait for others is the listener's part alone.
//
// Where it lies. In one sparse file, in `folder`, or in /dev/shm where `folder` is empty. The file is unlinked when the
// last rank has come, and earlier by the last to leave. What a killed process left in /dev/shm is removed by the next
// meeting there. Memory is taken for what has been said and not heard, and given back when all has been.
//
// The dead. A rank that left or died is told by Gone(), but what it said before is still heard.
//
// Thread rule: one thread at a time says, sends, hears and takes for one Meeting; WaitForNews and the const functions
// are for any thread. After a fork the child may only destroy it, which then changes nothing.
#ifndef ASHLAR_HOLLOW_MODEL_RENDEZVOUS_H_
#define ASHLAR_HOLLOW_MODEL_RENDEZVOUS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hollow/model/shared_machine.h"

namespace ashlar::hollow {

using Note = std::array<std::uint64_t, 8>;

struct Heard {
  Note note;
  const void* data = nullptr;  // null where there is none; stays until Done() or Take()
  std::uint64_t bytes = 0;
};

class Meeting {
 public:
  struct Place {
    std::string folder = {};
    std::string name = {};
    int ranks = 1;
    int rank = 0;
    std::uint64_t room_bytes = std::uint64_t{1} << 30;  // of address space for each rank's data; alike for all
    std::string about = {};  // of this rank, at most 31 characters: others read it by About()
  };
  enum class Sent : std::uint8_t { kYes, kFull, kNoMemory };

  // Null, and one line in *why, where the file cannot be made, the ranks disagree on their number, or the slot is
  // taken.
  static std::unique_ptr<Meeting> Join(const Place& place, std::string* why);
  ~Meeting();  // leaves
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  int ranks() const { return place_.ranks; }
  int rank() const { return place_.rank; }
  bool AllCame() const;
  bool Came(int rank) const;
  bool Left(int rank) const;
  bool Gone(int rank) const;  // came, and left or died; asks the system
  std::string About(int rank) const;
  int Pid(int rank) const;  // 0: has not come

  // Things that all hear, counted from 0 for each rank.
  Sent Say(const Note& note, const void* data, std::uint64_t bytes);
  std::uint64_t said() const { return said_; }
  std::uint64_t SaidBy(int rank) const;
  std::optional<Heard> Hear(int rank, std::uint64_t number) const;  // number is not below what this rank is Done with
  void Done(std::uint64_t number);  // this rank needs nothing up to and with this number again

  // Messages from one rank to another, counted from 0 for each pair.
  Sent Send(int to, const Note& note, const void* data, std::uint64_t bytes);
  std::optional<Heard> Next(int from) const;
  void Take(int from);

  // Changes whenever someone comes, says, sends or leaves.
  std::uint32_t News() const;
  // Waits until News() is no longer `seen`, at most so long.
  void WaitForNews(std::uint32_t seen, std::chrono::milliseconds most) const;

 private:
  struct Head;
  struct RankSlot;
  struct Call;
  struct Pair;
  struct Layout;
  struct Block {
    std::uint64_t end = 0;
    int to = -1;  // -1: for all
    std::uint64_t number = 0;
  };

  explicit Meeting(const Place& place) : place_(place) {}
  bool Open(std::string* why);
  bool TakeRank(std::string* why);
  void Leave();
  static void LeaveAllAtExit();
  static bool AnyoneThere(const std::byte* at, std::size_t bytes);
  static void RemoveAbandoned(const std::string& folder);
  void Tell();
  void Reclaim();
  Sent Put(Call& call, const Note& note, const void* data, std::uint64_t bytes, Block block);
  std::uint64_t HeardByAll() const;
  Head& head() const;
  RankSlot& slot(int rank) const;
  Call& call(int rank, std::uint64_t number) const;
  Pair& pair(int from, int to) const;
  std::byte* room(int rank) const;

  Place place_;
  std::string path_;
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t inode_ = 0;
  int pid_ = 0;
  std::uint64_t said_ = 0;
  std::map<std::uint64_t, Block> blocks_;  // by where they begin in this rank's room
  std::uint64_t filled_ = 0;               // of the room: memory is there below it
};

using Deadline = std::chrono::steady_clock::time_point;
// So many seconds from now.
Deadline InSeconds(double seconds);
// How long ranks wait for each other: ASHLAR_HOLLOW_TIMEOUT seconds, else 600, as PyTorch's watchdog of NCCL.
double MeetingTimeoutSeconds();

// "rank 2 (pid 71) died", "… left", "… has not come", "… has not called".
std::string NameOf(const Meeting& meeting, int rank);
// "rank 2 (pid 71) died, rank 3 has not come": of those that have not said `number` things; empty where all have.
std::string WhoLacks(const Meeting& meeting, std::uint64_t number);

// Says `data` and hears what every rank said as that number. Null, and one line in *why, at the deadline or when a rank
// that has not said it is gone.
std::optional<std::vector<std::string>> Exchange(Meeting& meeting, const std::string& data, Deadline deadline,
                                                 std::string* why);

// The layout of a meeting's file (rendezvous.h): the head, a slot for each rank, a row of things said for each rank, a
// row of messages for each pair, and a room for each rank's data. The file is sparse: what is not used takes nothing.
//
// All of it is in shared memory: zeros are valid, nothing is an address, and every change that another process acts on
// is an atomic's. Internal to rendezvous*.cc.

inline constexpr std::uint64_t kMeetingCalls = 1024;  // as many as a CUDA stream takes kernels before a launch waits
inline constexpr std::uint64_t kMeetingMessages = 256;
inline constexpr std::uint64_t kMeetingPage = 4096;

constexpr std::uint64_t RoundUpTo(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

struct Meeting::Head {
  std::atomic<std::uint32_t> ranks;
  std::atomic<std::uint32_t> came;
  std::atomic<std::uint32_t> news;  // a futex
  std::atomic<std::uint32_t> waiting;
  std::atomic<std::uint64_t> room_bytes;
};

struct alignas(64) Meeting::RankSlot {
  enum State : std::uint32_t { kFree = 0, kTaken = 1, kLeft = 2 };
  std::atomic<std::uint32_t> state;
  ProcessId process;
  char about[32];
  std::atomic<std::uint64_t> said;
  std::atomic<std::uint64_t> heard;  // needs nothing below this number
};

struct Meeting::Call {
  Note note;
  std::uint64_t offset;  // in the room of the rank that said it
  std::uint64_t bytes;
};

struct Meeting::Pair {
  std::atomic<std::uint64_t> sent;
  std::atomic<std::uint64_t> taken;
  Call messages[kMeetingMessages];
};

// Where each part begins.
struct Meeting::Layout {
  explicit Layout(std::uint64_t ranks)
      : calls(RoundUpTo(kMeetingPage + ranks * sizeof(RankSlot), kMeetingPage)),
        pairs(RoundUpTo(calls + ranks * kMeetingCalls * sizeof(Call), kMeetingPage)),
        rooms(RoundUpTo(pairs + ranks * ranks * sizeof(Pair), kMeetingPage)) {}
  std::uint64_t calls;
  std::uint64_t pairs;
  std::uint64_t rooms;
};

inline Meeting::Head& Meeting::head() const { return *reinterpret_cast<Head*>(at_); }

inline Meeting::RankSlot& Meeting::slot(int rank) const {
  return reinterpret_cast<RankSlot*>(at_ + kMeetingPage)[rank];
}

inline Meeting::Call& Meeting::call(int rank, std::uint64_t number) const {
  const auto first = reinterpret_cast<Call*>(at_ + Layout(place_.ranks).calls);
  return first[rank * kMeetingCalls + number % kMeetingCalls];
}

inline Meeting::Pair& Meeting::pair(int from, int to) const {
  const auto first = reinterpret_cast<Pair*>(at_ + Layout(place_.ranks).pairs);
  return first[static_cast<std::uint64_t>(from) * place_.ranks + to];
}

inline std::byte* Meeting::room(int rank) const { return at_ + Layout(place_.ranks).rooms + rank * place_.room_bytes; }

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_RENDEZVOUS_H_
