// All places at which a fleet's work is done, as the one that shares it out sees them: the workers of this process, and
// under MPI those of the other processes.
//
//   WorkerPlaces places(workers);                        // on one machine
//   JobPlaces places(workers, workers_each, *link);      // in the first process of a job; the others run Relay
//   places.Send(3, {MessageKind::kTask, "rank37.pickle"});
//   std::optional<PlaceMessage> got = places.Next(100);
//
// One thread.
#ifndef ASHLAR_COMMANDS_FLEET_PLACES_H_
#define ASHLAR_COMMANDS_FLEET_PLACES_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "commands/fleet/link.h"
#include "commands/fleet/worker.h"

namespace ashlar::fleet {

struct PlaceMessage {
  std::size_t place = 0;
  Message message;
};

class Places {
 public:
  virtual ~Places() = default;
  virtual std::size_t count() const = 0;
  virtual absl::Status Send(std::size_t place, const Message& message) = 0;
  // The next message of any place; nullopt: none came in this time. A place that is kGone says so once.
  virtual absl::StatusOr<std::optional<PlaceMessage>> Next(int wait_ms) = 0;
  // No more work is to come.
  virtual absl::Status Close() = 0;
};

// The workers of this process, which must outlive it.
class WorkerPlaces : public Places {
 public:
  explicit WorkerPlaces(absl::Span<const Worker> workers)
      : workers_(workers), parts_(workers.size()), is_gone_(workers.size()) {}

  std::size_t count() const override { return workers_.size(); }
  absl::Status Send(std::size_t place, const Message& message) override;
  absl::StatusOr<std::optional<PlaceMessage>> Next(int wait_ms) override;
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  absl::Span<const Worker> workers_;
  std::vector<MessageParts> parts_;
  std::vector<bool> is_gone_;
  std::size_t first_ = 0;  // whom to hear first, so that nobody waits for ever
};

// The workers of this and of every other process of a job: place p is worker p % workers_each of process p /
// workers_each.
class JobPlaces : public Places {
 public:
  JobPlaces(absl::Span<const Worker> workers, Link& link) : own_(workers), link_(link) {}

  std::size_t count() const override { return own_.count() * static_cast<std::size_t>(link_.size()); }
  absl::Status Send(std::size_t place, const Message& message) override;
  absl::StatusOr<std::optional<PlaceMessage>> Next(int wait_ms) override;
  absl::Status Close() override;

 private:
  WorkerPlaces own_;
  Link& link_;
};

// In a process that is not the first: passes messages on between its workers and the first process, until that closes.
absl::Status Relay(absl::Span<const Worker> workers, Link& link);

// Shares tasks out: each place gets the next one as soon as it is done with its last, so that nobody is idle while
// there is work. A task whose worker was lost is given out once more, after all others; lost again, it is given up.
//
//   ShareEvents events;
//   events.done = [](std::size_t task, const std::string& result) { ... };
//   absl::Status status = ShareOut(tasks, places, events);
//
// Results come in any order; one of a task that its place does not do now is passed over. One thread.
struct ShareEvents {
  // What a place gets of a task.
  std::function<std::string(std::size_t task, std::size_t place)> text;
  std::function<void(std::size_t task, const std::string& result)> done;
  // A worker was lost in it. `is_given_up`: for the second time.
  std::function<void(std::size_t task, std::size_t place, const std::string& how, bool is_given_up)> lost;
};

// The tasks 0 to count - 1, in this order. Unavailable when no place is left to do them.
absl::Status ShareOut(std::size_t count, Places& places, const ShareEvents& events);

}  // namespace ashlar::fleet

#endif  // ASHLAR_COMMANDS_FLEET_PLACES_H_
