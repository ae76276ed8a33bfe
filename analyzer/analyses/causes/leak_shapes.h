// Tells what kind of leak a program has: what piles up (steps/kept.h) at one moment, sorted by what must be changed.
//
//   graph        blocks of many lines of a forward pass, of older iterations: their graph is still known to somebody
//   eval_graph   the same with no backward pass since the first of them: an evaluation that records a graph
//   hooks        what a hook function made, outputs of inner modules that have a hook, gradients of activations
//   cache        tensors of a module that each round replaces by a slightly larger one (torch.cat)
//   eval_outputs outputs of an evaluation
//   outputs      what one or a few lines keep of each iteration
//   other        blocks that are told by another cause: copies of a model, by their frames or by its sizes
//
// Where the program wrote who holds what (holders/held_by_name.h), the owner decides in place of the lines: what piles
// up is what one variable has of many iterations (causes/owned_leaks.h), and these shapes are added:
//
//   frames       what errors keep of the frames that failed
//   cycle        what a reference cycle alone holds
//   optimizer    what an optimizer gathers beside its parameters' state
//
// What makes, moves or loads one model piles up for good and is none of these, and where no backward pass was seen,
// passes count as iterations only if lines outside of the modules recur between them: layers of one pass do not.
//
// Lines are told by PyTorch's own frames. Blocks of the autograd engine have no Python frame: its threads run none.
//
//   if (const std::optional<LeakGrowth> leak = LeakAt(context)) Print(leak->bytes, leak->bytes_per_step);
//
// Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_LEAK_SHAPES_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_LEAK_SHAPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/trace/holders.h"
#include "analyzer/analyses/holders/held_by_name.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// Finds what failed attempts have left behind: blocks of a forward pass that ran out of memory, still alive when a
// later attempt fails too. An exception that is kept, or handled inside of its except block, holds its traceback, that
// the frames of the failed pass, and these their tensors. An attempt begins with the first block of a forward pass
// since the failure before it, or since the end of the last whole step. Pure function.

// Indices in Timeline::blocks(); empty where fewer than two requests failed up to the moment. `stacks` may be nullptr.
std::vector<std::size_t> BlocksOfFailedAttempts(const timeline::Timeline& timeline, timeline::EventIndex moment,
                                                const trace::StackTable* stacks, const Steps& steps);

struct CauseContext;

enum class LeakShape : std::uint8_t {
  kGraph,
  kEvalGraph,
  kHooks,
  kCache,
  kEvalOutputs,
  kOutputs,
  kOther,
  kFrames,
  kCycle,
  kOptimizer
};

struct LeakGrowth {
  LeakShape shape{};
  std::uint64_t bytes = 0;                  // alive at the moment, of iterations before its own
  std::uint64_t bytes_per_step = 0;         // by which it grew, on average over `steps`
  std::size_t steps = 0;                    // iterations over which it grew
  std::vector<std::size_t> blocks = {};     // indices in Timeline::blocks(), by group
  std::size_t lines = 0;                    // stacks that allocated them
  std::vector<trace::Holder> holders = {};  // the variables that keep them, most bytes first; empty: told by lines
  bool is_replaced = false;                 // each variable has the last and largest alone of what its line made
};

// Most bytes first; none where nothing piles up. `held` may be nullptr.
std::vector<LeakGrowth> FindLeakGrowths(const timeline::Timeline& timeline, timeline::EventIndex moment,
                                        const trace::StackTable* stacks, const Steps& steps, const HeldByName* held);

// The largest at the context's moment that is material (evidence.h); nullopt without one.
std::optional<LeakGrowth> LeakAt(const CauseContext& context);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_LEAK_SHAPES_H_
