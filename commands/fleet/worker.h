// A worker process of this one, which is forked, does one task after another, and is replaced when it ends in one: a
// file that takes all memory, or a crash, costs the task and not the fleet.
//
//   absl::StatusOr<Worker> worker = Worker::Open([](const std::string& task) { return Read(task); });
//   SendMessage(worker->channel(), {MessageKind::kTask, "rank37.pickle"});
//   ReceiveMessage(worker->channel());   // kResult and what Read returned; kLost: "signal 9 (Killed)"
//
//   this process ── keeper: waits, tells a loss, forks again ── worker
//        └──────────────────────── one channel ────────────────────┘
//
// It is opened before threads are started and before MPI is: only a bare process can be forked safely. All end with
// this process, whichever way it ends. Move-only; one thread.
#ifndef ASHLAR_COMMANDS_FLEET_WORKER_H_
#define ASHLAR_COMMANDS_FLEET_WORKER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::fleet {

// In the worker: a task to its result.
using Work = std::function<std::string(const std::string& task)>;

class Worker {
 public:
  static absl::StatusOr<Worker> Open(const Work& work);

  Worker(Worker&& other) noexcept;
  Worker& operator=(Worker&& other) = delete;
  // Ends the worker and waits for it.
  ~Worker();

  int channel() const { return channel_; }

 private:
  Worker(int channel, pid_t keeper) : channel_(channel), keeper_(keeper) {}

  int channel_;
  pid_t keeper_;
};

// Whole messages between a process and one that it forked, over a pair of sockets that keep their borders.
//
//   absl::StatusOr<ChannelPair> pair = OpenChannel();
//   SendMessage(pair->ours, {MessageKind::kTask, "rank37.pickle", 37});
//   Message got = ReceiveMessage(pair->theirs);     // blocks
//
// A message of any length is sent in parts; one whose sender died among them is never received. Errors are of errno.
// One thread an end.
enum class MessageKind : char {
  kTask = 'T',    // to a worker: do this
  kEnd = 'E',     // to a worker: no more
  kResult = 'R',  // of a worker: done
  kLost = 'L',    // of its keeper: the worker ended, and why; another has begun
  kGone = 'G',    // nobody is there any more
};

struct Message {
  MessageKind kind = MessageKind::kGone;
  std::string text = {};
  std::uint32_t task = 0;  // its number, of kTask and kResult
};

struct ChannelPair {
  int ours = -1;
  int theirs = -1;
};

absl::StatusOr<ChannelPair> OpenChannel();

absl::Status SendMessage(int end, const Message& message);

// What has come of a message so far.
class MessageParts {
 public:
  // Waits for one part; true: a message is whole and in `message`. The end of the other side is kGone.
  bool Receive(int end, Message& message);

 private:
  std::string text_;
};

// Waits for a whole one.
Message ReceiveMessage(int end);

}  // namespace ashlar::fleet

#endif  // ASHLAR_COMMANDS_FLEET_WORKER_H_
