#include "analyzer/readers/torch/torch_notes.h"

namespace ashlar::readers {

void NoteCounter::Add(absl::string_view name, absl::string_view message, std::uint64_t count) {
  Entry& entry = entries_[std::string(name)];
  const auto found = entry.messages.find(std::string(message));
  if (found != entry.messages.end()) {
    found->second += count;
  } else if (entry.messages.size() < kMaxMessages) {
    entry.messages.emplace(std::string(message), count);
  } else {
    entry.others += count;
  }
}

std::vector<trace::Note> NoteCounter::Take() const {
  std::vector<trace::Note> notes;
  for (const auto& [name, entry] : entries_) {
    for (const auto& [message, count] : entry.messages) notes.push_back(trace::Note{name, message, count});
    if (entry.others > 0) notes.push_back(trace::Note{name, "more of the same with other names", entry.others});
  }
  return notes;
}

}  // namespace ashlar::readers
