// A trace entry read from its opcodes, without a value for each of them: what PyTorch and Python's pickler usually
// write. Everything else, and all that is an error or a note, is left to the pickle machine and ReadEntry, which say
// what an entry means; this says the same of those it takes, several times as fast.
//
//   EntryOpcodes entry(&context);
//   if (entry.Decode(item)) events.push_back(entry.Finish());
#ifndef ASHLAR_ANALYZER_READERS_TORCH_TORCH_ENTRY_OPCODES_H_
#define ASHLAR_ANALYZER_READERS_TORCH_TORCH_ENTRY_OPCODES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/event.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/readers/pickle/pickle_direct.h"
#include "analyzer/readers/torch/torch_context.h"
#include "analyzer/readers/torch/torch_stack_runs.h"

namespace ashlar::readers {

class EntryOpcodes {
 public:
  explicit EntryOpcodes(TorchContext* context) : context_(*context) {}

  // Goes past the entry. False: it is to be read by the machine; nothing has changed.
  bool Decode(pickle::DirectItem& item);
  // The event of the entry that was decoded last.
  const trace::Event& Finish();

 private:
  bool DecodeValue(Field field, pickle::DirectItem& item);
  bool DecodeAction(pickle::DirectItem& item);
  bool DecodeText(pickle::DirectItem& item, absl::string_view* out);
  bool DecodePool(pickle::DirectItem& item);
  bool DecodeFrames(pickle::DirectItem& item);
  bool DecodeRun(pickle::DirectItem& item);
  bool DecodeFrame(pickle::DirectItem& item);
  bool IsThere(const pickle::Value& container) const;
  bool Has(Field field) const { return (seen_ >> static_cast<unsigned>(field) & 1) != 0; }
  void FinishLabel();

  TorchContext& context_;
  StackRuns runs_;
  std::uint64_t runs_overwritten_ = 0;  // of the memo, when they were written

  // Of the entry at work.
  trace::Event event_;
  std::uint64_t seen_ = 0;                  // bit i: Field i
  std::array<absl::string_view, 3> label_;  // user_metadata, internal_metadata, compile_context
  bool is_new_stack_ = false;               // frames_ are to be interned
  std::vector<trace::FrameId> frames_;      // of the list
  const std::uint8_t* run_ = nullptr;       // their opcodes
  std::size_t run_bytes_ = 0;

  // The last label: most events have that of the one before.
  std::array<std::string, 3> last_label_texts_;
  trace::LabelId last_label_ = trace::kNoLabel;
};

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_TORCH_TORCH_ENTRY_OPCODES_H_
