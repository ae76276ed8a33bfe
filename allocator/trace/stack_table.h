// Interned call stacks. A frame is (file, line, function); a stack is a list of frames, innermost first. Equal
// stacks have equal ids, so that grouping by stack is grouping by integer.
#ifndef ASHLAR_ALLOCATOR_TRACE_STACK_TABLE_H_
#define ASHLAR_ALLOCATOR_TRACE_STACK_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/trace/event.h"

namespace ashlar::trace {

using FrameId = std::uint32_t;

// The file of a frame that is a scope of the program (core/slot.h), named by its function.
inline constexpr char kScopeFile[] = "scope";

// Which node of an fx graph a line of generated code runs (torch.cuda.memory._dump_snapshot with
// augment_with_fx_traces=True). All empty: the frame is no such line.
struct FxNode {
  std::string op = {};              // "call_function"
  std::string name = {};            // "linear_1"
  std::string target = {};          // "aten.linear.default"
  std::string original_trace = {};  // the stack of the model's own source, as Python prints it

  bool operator==(const FxNode&) const = default;
};

struct Frame {
  std::string file;  // '/' between folders, also of a path of Windows
  std::string function;
  std::int64_t line = 0;  // below 0: not known
  FxNode fx = {};
};

class StackTable {
 public:
  FrameId InternFrame(absl::string_view file, std::int64_t line, absl::string_view function, const FxNode& fx = {});
  StackId InternStack(absl::Span<const FrameId> frames);

  const Frame& frame(FrameId id) const { return frames_[id]; }
  // The frame's file as it was recorded: what a writer writes.
  const std::string& RecordedFile(FrameId id) const;
  // Innermost first; empty for kNoStack.
  absl::Span<const FrameId> stack(StackId id) const;

  std::size_t frame_count() const { return frames_.size(); }
  std::size_t stack_count() const { return starts_.size() - 1; }

 private:
  std::vector<Frame> frames_;
  absl::flat_hash_map<FrameId, std::string> recorded_files_;  // of those that Frame::file has otherwise
  std::vector<FrameId> stack_frames_;
  std::vector<std::uint64_t> starts_ = {0};  // stack i is stack_frames_[starts_[i], starts_[i + 1])
  absl::flat_hash_map<std::string, FrameId> frame_ids_;
  absl::flat_hash_map<std::string, StackId> stack_ids_;
};

// The texts that stand on events beside their stacks, interned: PyTorch's user_metadata (torch.cuda.memory's
// _set_memory_metadata and _annotate_tensor), internal_metadata (a mark of the allocator itself) and compile_context
// (the graph that torch.compile was running). Equal texts have equal ids.
//
//   LabelTable labels;
//   event.label = labels.Intern({.user_metadata = "forward"});   // kNoLabel where all three are empty
struct Label {
  std::string user_metadata = {};
  std::string internal_metadata = {};
  std::string compile_context = {};

  bool operator==(const Label&) const = default;
  bool operator<(const Label& other) const {
    return std::tie(user_metadata, internal_metadata, compile_context) <
           std::tie(other.user_metadata, other.internal_metadata, other.compile_context);
  }
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

#endif  // ASHLAR_ALLOCATOR_TRACE_STACK_TABLE_H_
