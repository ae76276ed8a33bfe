// Whole messages between a process and one that it forked, over a pair of sockets that keep their borders.
//
//   absl::StatusOr<ChannelPair> pair = OpenChannel();
//   SendMessage(pair->ours, {MessageKind::kTask, "rank37.pickle", 37});
//   Message got = ReceiveMessage(pair->theirs);     // blocks
//
// A message of any length is sent in parts; one whose sender died among them is never received. Errors are of errno.
// One thread an end.
#ifndef ASHLAR_ANALYZER_FLEET_CHANNEL_H_
#define ASHLAR_ANALYZER_FLEET_CHANNEL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::fleet {

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

#endif  // ASHLAR_ANALYZER_FLEET_CHANNEL_H_
