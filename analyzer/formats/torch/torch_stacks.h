// Call stacks of a snapshot: lists of frame dictionaries, interned by identity first (PyTorch shares the frame
// objects, and often the lists), by content second.
#ifndef ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_STACKS_H_
#define ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_STACKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/formats/pickle/pickle_document.h"
#include "analyzer/formats/torch/torch_record.h"

namespace ashlar::formats {

class StackReader {
 public:
  StackReader(const pickle::Document& document, FieldNames* names, NoteCounter* notes, trace::StackTable* table);

  // `frames` must be a list of frames. An empty one gives kNoStack.
  absl::Status Read(const pickle::Value& frames, trace::StackId* out);
  // One of its frames.
  absl::Status ReadOne(const pickle::Value& frame, trace::FrameId* out);

  // For entries that are read while the document still grows (torch_stream.h): what is known of a container, +1, and
  // that a new one stands for it.
  std::uint32_t Known(std::uint64_t container) const { return container < known_.size() ? known_[container] : 0; }
  void CutBack(std::size_t containers) {
    if (containers < known_.size()) known_.resize(containers);
  }
  void SetKnown(std::uint64_t container, std::uint32_t known) { KnownAt(container) = known; }
  // From here on stacks are numbered anew, in the order in which they are read: the table is empty, and `earlier` is
  // what it was.
  void BeginAgain(trace::StackTable earlier);
  // The stack of the earlier table as one of the new.
  trace::StackId Renumbered(trace::StackId earlier);

 private:
  std::uint32_t& KnownAt(std::uint64_t container) {
    if (container >= known_.size()) [[unlikely]]
      known_.resize(document_.container_count(), 0);
    return known_[container];
  }
  std::uint32_t KnownEarlier(std::uint64_t container) const {
    return container < known_earlier_.size() ? known_earlier_[container] : 0;
  }
  trace::FrameId RenumberedFrame(trace::FrameId earlier);
  absl::Status ReadStack(const pickle::Value& frames, trace::StackId* out);
  absl::Status ReadFrame(const pickle::Value& frame, trace::FrameId* out);
  absl::Status ReadLine(const Record& record, std::int64_t* line);
  trace::FxNode FxNodeOf(const Record& record);
  std::string TextOf(absl::string_view text);

  const pickle::Document& document_;
  FieldNames* names_;
  NoteCounter* notes_;
  trace::StackTable* table_;
  // By container index, +1, 0 = not read yet: a frame's id, or for a list its stack's. kNoStack + 1 would be 0, so a
  // list without frames is read again, which costs nothing.
  std::vector<std::uint32_t> known_;
  std::vector<trace::FrameId> frames_;  // of the stack at work
  trace::StackTable earlier_;
  std::vector<std::uint32_t> known_earlier_;
  std::vector<trace::StackId> renumbered_;  // of the earlier stacks; kNoStack: not yet
};

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_STACKS_H_
