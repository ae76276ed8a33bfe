// One rank of an NCCL communicator on a hollow device, and the calls on it that are not over.
//
// How calls go. As on a GPU, a call returns before its peers have called. It gives the others its bytes at once, by a
// copy that waits for nobody (Meeting), and what it will write counts as unknown from then on. No thread of its own
// runs: a call is finished, that is its result written, by whichever thread of this process next calls NCCL, asks an
// event or stream whether it is done, or must have the result. Only the last waits for the peers: a copy from or over
// the bytes that the call writes, or a synchronisation with a stream or event behind it (stream_work.h). So
//   - ranks may call on several communicators in different orders, and tell each other by other ways in between;
//   - a send never waits for its receive, in a group or out of it, and the order within a group is of no matter;
//   - one thread can make the calls of all the ranks of ncclCommInitAll, in a group or one after the other;
//   - after a host has synchronised, or copied, it reads what NCCL would have written.
// It differs from a GPU in two things. A call whose own input is the result of an unfinished call waits for that one. A
// host that copies asynchronously from an unfinished result waits at the copy.
//
// Calls on one communicator finish in order, messages of a pair too. Ranks that make different calls as their n-th, or
// receive other than was sent, get one line that names both, and the communicator fails (a real run would hang). So
// they do when a rank that they wait for dies, leaves, or does not call within MeetingTimeoutSeconds():
// ncclRemoteError.
//
// Memory that NCCL itself would take for a communicator is taken as 0 bytes. What it would go by is noted (LibraryUse).
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_API_NCCL_COMMUNICATOR_H_
#define ASHLAR_HOLLOW_API_NCCL_COMMUNICATOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hollow/api/cuda/stream_work.h"
#include "hollow/api/nccl/reduce.h"
#include "hollow/model/rendezvous.h"

namespace ashlar::hollow {

// One call of NCCL by one rank: what it says to the others, which bytes it gives them, and what it does with theirs.
//
//   NcclCall call{.kind = NcclCall::Kind::kAllReduce, .send = x, .receive = y, .count = 8, .type = NcclType::kFloat32};
//   note = call.Describe();  data = call.Take(slot);          // at the call
//   call.Give(slot, heard_of_all_ranks);                      // when all ranks have called
//
// Bytes move where the message, the larger of what a rank gives and gets, is at most `real_bytes`. What a rank gives is
// carried only if all of it is known; what a rank gets is known where all that goes into it is, else forgotten.
// Units: counts in elements of the type, sizes in bytes. Thread rule: a value; the caller keeps other threads out.
struct NcclCall {
  enum class Kind : std::uint8_t {
    kAllReduce,
    kReduce,
    kReduceScatter,
    kBroadcast,
    kAllGather,
    kAllToAll,
    kGather,
    kScatter,
    kSplit,  // and the other calls that make a communicator out of one: `data` is what a rank says
    kSend,
    kReceive,
  };
  struct RankSlot {
    int rank = 0;
    int ranks = 1;
  };

  Kind kind = Kind::kAllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  // as the call names it: of one rank's part for all that gather or scatter
  NcclType type = NcclType::kInt8;
  NcclOp op = NcclOp::kSum;
  int peer = 0;                  // the root, or the other of a pair
  const void* scalar = nullptr;  // each rank's values are multiplied by it first; null: not. Device or host memory
  std::vector<std::byte> scalar_bytes = {};  // the same, where it was read when the operation was made
  std::string data = {};
  const void* own = nullptr;  // of a receive in a group: what this rank sends to itself in it, as much; null: nothing

  bool IsReduction() const { return kind <= Kind::kReduceScatter; }
  bool IsPair() const { return kind >= Kind::kSend; }
  std::uint64_t PartBytes() const;                       // count elements
  std::uint64_t GivesBytes(const RankSlot& slot) const;  // that this rank puts in
  std::vector<ByteRange> Writes(const RankSlot& slot) const;
  bool IsSmall(int ranks) const;

  // The same for all ranks that make the same call, but for the last two numbers.
  Note Describe() const;
  // What this rank gives, ready to be combined; empty where it gives nothing or it is not known.
  std::vector<std::byte> Take(const RankSlot& slot) const;
  // Writes what this rank gets, of the parts that each rank gave, in their order.
  void Give(const RankSlot& slot, const std::vector<Heard>& parts) const;

 private:
  void GiveReduced(const RankSlot& slot, const std::vector<Heard>& parts) const;
};

// Whether two ranks make the same call.
bool SameCall(const Note& a, const Note& b);
// "all-reduce of 8 float32 (sum)".
std::string TextOf(const Note& note);

class AbsentPeers;
class NcclCommunicator;

// A call that was made and is perhaps not over.
class NcclWork : public StreamWork {
 public:
  NcclWork(std::shared_ptr<NcclCommunicator> communicator, const NcclCall& made)
      : call(made), communicator_(std::move(communicator)) {}
  void Poll() override;
  void Settle() override;

  const NcclCall call;
  std::uint64_t number = 0;        // among the calls of this rank; of pairs: none
  std::vector<std::string> heard;  // for kSplit: what each rank said

 private:
  friend class NcclCommunicator;
  std::shared_ptr<NcclCommunicator> communicator_;
};

class NcclCommunicator : public std::enable_shared_from_this<NcclCommunicator> {
 public:
  struct Options {
    int device = 0;
    bool blocking = true;
    bool are_all_here = false;  // one process makes all the ranks
  };
  // What becomes a slot of the new communicator, from what all ranks of the old one said; ranks = 0: it cannot be.
  using Plan = std::function<Meeting::Place(const std::vector<std::string>& said)>;

  // Takes the slot. Does not wait for the other ranks: Ready() does.
  static std::shared_ptr<NcclCommunicator> Join(const Meeting::Place& place, const Options& options,
                                                NcclResult* result);
  // The same with a slot that is known when `work`, a kSplit of another communicator, is over.
  static std::shared_ptr<NcclCommunicator> Join(std::shared_ptr<NcclWork> work, Plan plan, const Options& options);

  // Waits until all ranks have come; `wait` false: only looks, and answers kInProgress.
  NcclResult Ready(bool wait);
  // Makes the call, and returns the work in *work where that is not null.
  NcclResult Issue(const NcclCall& call, void* stream, std::shared_ptr<NcclWork>* work = nullptr);
  // Finishes what can be finished. Waits for the rest where `wait`; else kInProgress where there is a rest.
  NcclResult Flush(bool wait);
  // What failed since, or kInProgress, or kSuccess.
  NcclResult AsyncError();
  // Gives up what is not over, and leaves; Leave() waits for it first.
  void Abort();
  void Leave();

  // Gives back what NCCL takes for it, and takes it again. Between the two it makes no call: kInvalidUsage.
  NcclResult Suspend();
  NcclResult Resume();
  bool is_suspended();
  // Notes what the call needs of NCCL's memory.
  void NoteUse(const NcclCall& call);

  // Operations that the program made.
  struct Operation {
    NcclType type;
    const void* scalar = nullptr;
    std::vector<std::byte> scalar_bytes = {};
  };
  int AddOperation(Operation operation);
  bool RemoveOperation(int number);
  bool FindOperation(int number, Operation* operation);

  int rank() const { return place_.rank; }
  int ranks() const { return place_.ranks; }
  int device() const { return options_.device; }
  bool blocking() const { return options_.blocking; }
  const Meeting::Place& place() const { return place_; }
  std::string LastError();
  int NextShrink();

 private:
  friend class NcclWork;
  enum class State : std::uint8_t { kPlanned, kJoining, kReady, kLeft };

  NcclCommunicator() = default;
  NcclResult IssueAlone(const NcclCall& call, void* stream);
  // These want mutex_ held.
  NcclResult Advance();
  NcclResult TakePlannedRank();
  bool Meet();
  NcclResult CheckDevices();
  void Progress();
  bool FinishNext();
  bool FinishMessages(int from);
  void LookForTheGone(bool deadline_over);
  NcclResult Fail(NcclResult result, const std::string& line);
  void EndAll(StreamWork::State state);
  Meeting::Sent Publish(const NcclCall& call, const std::vector<std::byte>& bytes, NcclWork& work);

  void WaitFor(const NcclWork& work);
  void Pause(std::uint32_t news, std::chrono::milliseconds most);
  std::string NameOfCall(const Note& note, std::uint64_t number) const;

  std::mutex mutex_;
  Options options_;
  Meeting::Place place_;
  State state_ = State::kJoining;
  NcclResult error_ = NcclResult::kSuccess;
  std::string last_error_;
  std::shared_ptr<NcclWork> planned_by_;
  Plan plan_;
  std::shared_ptr<Meeting> meeting_;
  std::shared_ptr<AbsentPeers> absent_;          // in the meeting's place, where the others have no process
  std::deque<std::shared_ptr<NcclWork>> calls_;  // not over, in order
  std::map<int, std::deque<std::shared_ptr<NcclWork>>> receives_;  // by the rank that sends
  std::map<int, Operation> operations_;
  int next_operation_ = kNcclOps;
  int shrinks_ = 0;
  int use_ = -1;  // its number in LibraryUse; -1: none yet
  bool is_suspended_ = false;
  Deadline looked_ = {};  // when it was last looked whether anyone died
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_NCCL_COMMUNICATOR_H_
