// The texts that stand on events beside their stacks, interned: PyTorch's user_metadata (torch.cuda.memory's
// _set_memory_metadata and _annotate_tensor), internal_metadata (a mark of the allocator itself) and compile_context
// (the graph that torch.compile was running). Equal texts have equal ids.
//
//   LabelTable labels;
//   event.label = labels.Intern({.user_metadata = "forward"});   // kNoLabel where all three are empty
#ifndef ASHLAR_ALLOCATOR_TRACE_LABEL_TABLE_H_
#define ASHLAR_ALLOCATOR_TRACE_LABEL_TABLE_H_

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "allocator/trace/event.h"

namespace ashlar::trace {

struct Label {
  std::string user_metadata = {};
  std::string internal_metadata = {};
  std::string compile_context = {};

  auto operator<=>(const Label&) const = default;
};

class LabelTable {
 public:
  LabelId Intern(const Label& label);

  // An empty one for kNoLabel.
  const Label& label(LabelId id) const;
  std::size_t size() const { return labels_.size(); }

 private:
  std::vector<Label> labels_;
  std::map<Label, LabelId> ids_;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_LABEL_TABLE_H_
