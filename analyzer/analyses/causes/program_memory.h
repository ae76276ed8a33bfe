// What the memory of a training is for, told from when its blocks were made and which part of the program made them
// (steps/program_part.h): a pass forward ends where a backward pass or an optimizer begins.
//
//   |  setup  | forward ... | backward ... | optimizer |  forward ... | backward X
//                                                         ^ BeginOfPass            ^ the moment
//
// A block that is alive at the moment is of the pass (activations), or older (weights, copies, data), or a gradient, or
// state. What is made after the backward pass counts with the older ones where it outlives the step, as its line's do.
// Needs the history's stacks. A backward pass on a thread of its own has no Python frames: blocks without any frame, in
// a history that has them, are its. Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_PROGRAM_MEMORY_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_PROGRAM_MEMORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/steps/program_part.h"

namespace ashlar::analyses {

// A pass forward up to the end of its step: [begin, end), from its first block under a `forward` on.
struct Pass {
  timeline::EventIndex begin = 0;
  timeline::EventIndex backward = timeline::kNever;              // its first block of the backward pass
  timeline::EventIndex last_backward = timeline::kBeforeWindow;  // the last one
  timeline::EventIndex end = timeline::kNever;
  std::size_t forward_blocks = 0;  // made
};

using SizeCounts = std::map<std::uint64_t, std::size_t>;  // how many blocks were asked for with a size

class ProgramMemory {
 public:
  explicit ProgramMemory(const CauseContext& context);

  // In order. A pass that nothing followed has no end.
  const std::vector<Pass>& passes() const { return passes_; }
  // The pass of the moment; nullptr where no block was made under a `forward` before it.
  const Pass* Current() const { return current_.has_value() ? &passes_[*current_] : nullptr; }

  // Indices in Timeline::blocks(), alive at the moment, in their order:
  const std::vector<std::size_t>& activations() const { return activations_; }  // made in the pass, not by what follows
  const std::vector<std::size_t>& gradients() const { return gradients_; }      // made by a backward pass
  // Made by modules that a backward pass runs again (torch.utils.checkpoint).
  const std::vector<std::size_t>& recomputed() const { return recomputed_; }
  const std::vector<std::size_t>& state() const { return state_; }  // made by an optimizer
  // Older than the pass, and made by none of those: weights, buffers, copies, data.
  const std::vector<std::size_t>& lasting() const { return lasting_; }

  // Of the sizes that one backward pass leaves behind, the most that any did: those of what is trained.
  const SizeCounts& trained() const { return trained_; }

  // Whether a pass holds calls of torch.autograd.grad (torch_frames.h), and so repeats itself.
  bool IsOfInnerLoop() const { return is_of_inner_loop_; }

  // How many times as large as in all earlier passes the lines of the current one make their blocks, by the middle one
  // of them: 16 for a batch 16 times as long. nullopt: too few lines are of both.
  std::optional<double> TimesEarlierPasses() const;

  ProgramPart PartOfBlock(std::size_t index) const { return block_parts_[index]; }
  std::uint64_t RequestedBytes(std::size_t index) const;  // what was asked for; what the block spans where not known
  std::uint64_t BytesOf(const std::vector<std::size_t>& indices) const;  // what they span
  SizeCounts SizesOf(const std::vector<std::size_t>& indices) const;     // by what was asked for

 private:
  void FindParts();
  void FindPasses();
  void Sort();
  std::optional<std::vector<std::size_t>*> ListOfOwner(std::size_t index);
  std::set<trace::StackId> KeepingStacks() const;
  void FindTrained();

  const CauseContext& context_;
  const timeline::Timeline& timeline_;
  std::vector<ProgramPart> block_parts_;
  std::set<trace::StackId> recomputing_;  // stacks of what a backward pass runs again
  std::vector<bool> are_of_model_;        // by block: PyTorch's own frames say so
  std::vector<Pass> passes_;
  std::optional<std::size_t> current_;
  std::vector<std::size_t> activations_, gradients_, recomputed_, state_, lasting_;
  SizeCounts trained_;
  bool is_of_inner_loop_ = false;
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_PROGRAM_MEMORY_H_
