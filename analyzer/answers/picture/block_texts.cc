#include "analyzer/answers/picture/block_texts.h"

#include "analyzer/answers/picture/picture.h"

namespace ashlar::answers {

using timeline::EventIndex;

BlockTexts::BlockTexts(const timeline::Timeline& timeline, const trace::LabelTable& labels) {
  if (labels.size() == 0) return;
  absl::flat_hash_map<std::uint64_t, EventIndex> allocated_by;  // the block that lives at an address
  for (EventIndex i = 0; i < timeline.event_count(); ++i) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(i)];
    const trace::Label& label = labels.label(event.label);
    if (event.action == trace::Action::kAlloc) {
      allocated_by[event.address] = i;
      Put(i, label.user_metadata.empty() ? label.internal_metadata : label.user_metadata);
    } else if (event.action == trace::Action::kFreeRequested) {
      allocated_by.erase(event.address);
    } else if (event.action == trace::Action::kAnnotate) {
      const auto found = allocated_by.find(event.address);
      if (found != allocated_by.end()) Put(found->second, label.user_metadata);
    }
  }
}

void BlockTexts::Put(EventIndex alloc_event, const std::string& text) {
  if (text.empty()) return;
  const auto [found, is_new] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(text);
  text_of_[alloc_event] = found->second;
}

std::uint32_t BlockTexts::TextOf(EventIndex alloc_event) const {
  const auto found = text_of_.find(alloc_event);
  return found == text_of_.end() ? kNoText : found->second;
}

}  // namespace ashlar::answers
