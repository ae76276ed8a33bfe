#include "allocator/trace/label_table.h"

namespace ashlar::trace {

LabelId LabelTable::Intern(const Label& label) {
  if (label == Label{}) return kNoLabel;
  const auto [it, is_new] = ids_.try_emplace(label, static_cast<LabelId>(labels_.size()));
  if (is_new) labels_.push_back(label);
  return it->second;
}

const Label& LabelTable::label(LabelId id) const {
  static const Label none;
  return id == kNoLabel ? none : labels_[id];
}

}  // namespace ashlar::trace
