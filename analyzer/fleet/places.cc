#include "analyzer/fleet/places.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ashlar::fleet {
namespace {

// MPI's own waits keep a core busy: we look, and sleep on the seats in between.
constexpr int kLookEveryMs = 2;

// A message as a packet: the seat, the task, the kind, the text.
std::string Packed(std::size_t seat, const Message& message) {
  return absl::StrCat(seat, " ", message.task, " ", std::string(1, static_cast<char>(message.kind)), message.text);
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

absl::Status SeatPlaces::Send(std::size_t place, const Message& message) {
  return SendMessage(seats_[place].channel(), message);
}

absl::StatusOr<std::optional<PlaceMessage>> SeatPlaces::Next(int wait_ms) {
  std::vector<pollfd> ends;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    ends.push_back({is_gone_[i] ? -1 : seats_[i].channel(), POLLIN, 0});
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

absl::Status Relay(absl::Span<const Seat> seats, Link& link) {
  SeatPlaces own(seats);
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

}  // namespace ashlar::fleet
