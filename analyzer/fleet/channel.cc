#include "analyzer/fleet/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::fleet {
namespace {

constexpr std::size_t kPartBytes = 32 * 1024;  // far below what a socket takes at once
constexpr char kMore = '+';
constexpr std::size_t kHeadBytes = 2 + sizeof(std::uint32_t);

// The kind, whether more comes, the task and the text.
bool SendPart(int end, const Message& message, bool is_last, absl::string_view text) {
  std::string part(kHeadBytes, '\0');
  part[0] = static_cast<char>(message.kind);
  part[1] = is_last ? '.' : kMore;
  std::memcpy(part.data() + 2, &message.task, sizeof(message.task));
  part.append(text.data(), text.size());
  ssize_t sent = 0;
  do {
    sent = send(end, part.data(), part.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(part.size());
}

}  // namespace

absl::StatusOr<ChannelPair> OpenChannel() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(absl::StrCat("no sockets for the processes: ", std::strerror(errno)));
  }
  return ChannelPair{ends[0], ends[1]};
}

absl::Status SendMessage(int end, const Message& message) {
  absl::string_view left = message.text;
  bool is_sent = true;
  do {
    const absl::string_view part = left.substr(0, kPartBytes);
    left.remove_prefix(part.size());
    is_sent = SendPart(end, message, left.empty(), part);
  } while (is_sent && !left.empty());
  if (is_sent) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("a process cannot be reached: ", std::strerror(errno)));
}

bool MessageParts::Receive(int end, Message& message) {
  std::string part(kPartBytes + kHeadBytes, '\0');
  ssize_t size = 0;
  do {
    size = recv(end, part.data(), part.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size < static_cast<ssize_t>(kHeadBytes)) {
    message = {MessageKind::kGone, ""};
    return true;
  }
  const auto kind = static_cast<MessageKind>(part[0]);
  // Its sender did not come to the end.
  if (kind == MessageKind::kLost) text_.clear();
  text_.append(part, kHeadBytes, static_cast<std::size_t>(size) - kHeadBytes);
  if (part[1] == kMore) return false;
  message = {kind, std::exchange(text_, "")};
  std::memcpy(&message.task, part.data() + 2, sizeof(message.task));
  return true;
}

Message ReceiveMessage(int end) {
  Message out;
  MessageParts parts;
  while (!parts.Receive(end, out)) {
  }
  return out;
}

}  // namespace ashlar::fleet
