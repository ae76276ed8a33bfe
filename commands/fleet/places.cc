#include "commands/fleet/places.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ashlar::fleet {
namespace {

// MPI's own waits keep a core busy: we look, and sleep on the workers in between.
constexpr int kLookEveryMs = 2;

// A message as a packet: the worker, the task, the kind, the text.
std::string Packed(std::size_t worker, const Message& message) {
  return absl::StrCat(worker, " ", message.task, " ", std::string(1, static_cast<char>(message.kind)), message.text);
}

absl::StatusOr<PlaceMessage> Unpacked(const std::string& bytes) {
  PlaceMessage out;
  const std::size_t first = bytes.find(' ');
  const std::size_t blank = first == std::string::npos ? first : bytes.find(' ', first + 1);
  if (blank == std::string::npos || blank + 1 >= bytes.size() ||
      !absl::SimpleAtoi(bytes.substr(0, first), &out.place) ||
      !absl::SimpleAtoi(bytes.substr(first + 1, blank - first - 1), &out.message.task)) {
    return absl::InternalError("a process of the job sent what is no message: are all of the same version of ashlar?");
  }
  out.message.kind = static_cast<MessageKind>(bytes[blank + 1]);
  out.message.text = bytes.substr(blank + 2);
  return out;
}

}  // namespace

absl::Status WorkerPlaces::Send(std::size_t place, const Message& message) {
  return SendMessage(workers_[place].channel(), message);
}

absl::StatusOr<std::optional<PlaceMessage>> WorkerPlaces::Next(int wait_ms) {
  std::vector<pollfd> ends;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    ends.push_back({is_gone_[i] ? -1 : workers_[i].channel(), POLLIN, 0});
  }
  const int ready = poll(ends.data(), ends.size(), wait_ms);
  if (ready < 0 && errno != EINTR) return absl::UnavailableError(absl::StrCat("poll: ", std::strerror(errno)));
  if (ready <= 0) return std::nullopt;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::size_t place = (first_ + i) % ends.size();
    if (ends[place].revents == 0) continue;
    PlaceMessage out{place, {}};
    if (!parts_[place].Receive(ends[place].fd, out.message)) continue;
    is_gone_[place] = out.message.kind == MessageKind::kGone;
    first_ = place + 1;
    return out;
  }
  return std::nullopt;
}

absl::Status JobPlaces::Send(std::size_t place, const Message& message) {
  const std::size_t process = place / own_.count();
  if (process == 0) return own_.Send(place, message);
  return link_.Send(static_cast<int>(process), Packed(place % own_.count(), message));
}

absl::StatusOr<std::optional<PlaceMessage>> JobPlaces::Next(int wait_ms) {
  for (int waited_ms = 0; waited_ms <= wait_ms; waited_ms += kLookEveryMs) {
    absl::StatusOr<std::optional<PlaceMessage>> own = own_.Next(kLookEveryMs);
    if (!own.ok() || own->has_value()) return own;
    const absl::StatusOr<std::optional<Packet>> packet = link_.TryReceive();
    if (!packet.ok()) return packet.status();
    if (!packet->has_value()) continue;
    absl::StatusOr<PlaceMessage> message = Unpacked((*packet)->bytes);
    if (!message.ok()) return message.status();
    message->place += static_cast<std::size_t>((*packet)->from) * own_.count();
    return *std::move(message);
  }
  return std::nullopt;
}

absl::Status JobPlaces::Close() {
  for (int process = 1; process < link_.size(); ++process) {
    if (absl::Status status = link_.Send(process, Packed(0, {MessageKind::kGone})); !status.ok()) return status;
  }
  return link_.Close();
}

absl::Status Relay(absl::Span<const Worker> workers, Link& link) {
  WorkerPlaces own(workers);
  while (true) {
    const absl::StatusOr<std::optional<PlaceMessage>> message = own.Next(kLookEveryMs);
    if (!message.ok()) return message.status();
    if (message->has_value()) {
      if (absl::Status status = link.Send(0, Packed((*message)->place, (*message)->message)); !status.ok())
        return status;
    }
    const absl::StatusOr<std::optional<Packet>> packet = link.TryReceive();
    if (!packet.ok()) return packet.status();
    if (!packet->has_value()) continue;
    const absl::StatusOr<PlaceMessage> task = Unpacked((*packet)->bytes);
    if (!task.ok()) return task.status();
    if (task->message.kind == MessageKind::kGone) return link.Close();
    // One that cannot be reached tells so itself.
    own.Send(task->place, task->message).IgnoreError();
  }
}

namespace {

constexpr int kWaitMs = 100;
constexpr std::size_t kMostAttempts = 2;

class Sharing {
 public:
  Sharing(std::size_t count, Places& places, const ShareEvents& events)
      : places_(places),
        events_(events),
        left_(count),
        attempts_(count),
        at_(places.count()),
        is_gone_(places.count()) {
    for (std::size_t task = 0; task < count; ++task) queue_.push_back(task);
  }

  absl::Status Run() {
    while (left_ > 0) {
      HandOut();
      if (absl::Status status = CheckPlaces(); !status.ok()) return status;
      const absl::StatusOr<std::optional<PlaceMessage>> got = places_.Next(kWaitMs);
      if (!got.ok()) return got.status();
      if (got->has_value()) Take((*got)->place, (*got)->message);
    }
    return absl::OkStatus();
  }

 private:
  void HandOut() {
    for (std::size_t place = 0; place < at_.size() && !queue_.empty(); ++place) {
      if (at_[place].has_value() || is_gone_[place]) continue;
      const std::size_t task = queue_.front();
      // A place that cannot be reached tells so when it is asked for messages.
      if (!places_.Send(place, {MessageKind::kTask, events_.text(task, place), static_cast<std::uint32_t>(task)}).ok())
        continue;
      queue_.pop_front();
      at_[place] = task;
    }
  }

  absl::Status CheckPlaces() const {
    for (std::size_t place = 0; place < at_.size(); ++place) {
      if (!is_gone_[place]) return absl::OkStatus();
    }
    return absl::UnavailableError(
        absl::StrCat("all ", at_.size(), " processes that read the files were lost, ", left_, " files before the end"));
  }

  void Take(std::size_t place, const Message& message) {
    if (message.kind == MessageKind::kGone) is_gone_[place] = true;
    // A worker that was lost before it took its task leaves that to the next one: it was given out anew since.
    if (message.kind == MessageKind::kResult && at_[place] != message.task) return;
    const std::optional<std::size_t> task = std::exchange(at_[place], std::nullopt);
    if (!task.has_value()) return;
    if (message.kind == MessageKind::kResult) {
      --left_;
      events_.done(*task, message.text);
      return;
    }
    const bool is_given_up = ++attempts_[*task] == kMostAttempts;
    if (is_given_up) {
      --left_;
    } else {
      queue_.push_back(*task);
    }
    events_.lost(*task, place, message.text.empty() ? "it is gone" : message.text, is_given_up);
  }

  Places& places_;
  const ShareEvents& events_;
  std::size_t left_;
  std::deque<std::size_t> queue_;
  std::vector<std::size_t> attempts_;
  std::vector<std::optional<std::size_t>> at_;  // what each place does
  std::vector<bool> is_gone_;
};

}  // namespace

absl::Status ShareOut(std::size_t count, Places& places, const ShareEvents& events) {
  return Sharing(count, places, events).Run();
}

}  // namespace ashlar::fleet
