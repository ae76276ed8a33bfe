#include "analyzer/replay/op_sink.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ashlar::replay {

void EventLog::SetOp(std::uint64_t op) {
  Flush();
  op_ = op;
}

void EventLog::OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) {
  if (event.action == trace::Action::kFreeCompleted) {
    completed_.push_back(event);
    return;
  }
  Flush();
  Append(event, block_size_bytes);
}

const std::string& EventLog::Finish() {
  Flush();
  return text_;
}

void EventLog::Flush() {
  std::sort(completed_.begin(), completed_.end(),
            [](const trace::Event& a, const trace::Event& b) { return a.address < b.address; });
  for (const trace::Event& event : completed_) Append(event, 0);
  completed_.clear();
}

void EventLog::Append(const trace::Event& event, std::uint64_t block_size_bytes) {
  absl::StrAppend(&text_, op_, " ", trace::ActionName(event.action), " ", event.address, " ", event.size_bytes, " ");
  absl::StrAppend(&text_, Handle(event.stream));
  if (event.action == trace::Action::kAlloc) absl::StrAppend(&text_, " ", block_size_bytes);
  text_ += '\n';
}

}  // namespace ashlar::replay
