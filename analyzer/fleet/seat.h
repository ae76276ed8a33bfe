// A worker process of this one, which is forked, does one task after another, and is replaced when it ends in one: a
// file that takes all memory, or a crash, costs the task and not the fleet.
//
//   absl::StatusOr<Seat> seat = Seat::Open([](const std::string& task) { return Read(task); });
//   SendMessage(seat->channel(), {MessageKind::kTask, "rank37.pickle"});
//   ReceiveMessage(seat->channel());   // kResult and what Read returned; kLost: "signal 9 (Killed)"
//
//   this process ── keeper: waits, tells a loss, forks again ── worker
//        └──────────────────────── one channel ────────────────────┘
//
// It is opened before threads are started and before MPI is: only a bare process can be forked safely. All end with
// this process, whichever way it ends. Move-only; one thread.
#ifndef ASHLAR_ANALYZER_FLEET_SEAT_H_
#define ASHLAR_ANALYZER_FLEET_SEAT_H_

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace ashlar::fleet {

// In the worker: a task to its result.
using Work = std::function<std::string(const std::string& task)>;

class Seat {
 public:
  static absl::StatusOr<Seat> Open(const Work& work);

  Seat(Seat&& other) noexcept;
  Seat& operator=(Seat&& other) = delete;
  // Ends the worker and waits for it.
  ~Seat();

  int channel() const { return channel_; }

 private:
  Seat(int channel, pid_t keeper) : channel_(channel), keeper_(keeper) {}

  int channel_;
  pid_t keeper_;
};

}  // namespace ashlar::fleet

#endif  // ASHLAR_ANALYZER_FLEET_SEAT_H_
