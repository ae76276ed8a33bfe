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

enum class LeakShape : std::uint8_t { kGraph, kEvalGraph, kHooks, kCache, kEvalOutputs, kOutputs, kOther };

struct LeakGrowth {
  LeakShape shape{};
  std::uint64_t bytes = 0;               // alive at the moment, of iterations before its own
  std::uint64_t bytes_per_step = 0;      // by which it grew, on average over `steps`
  std::size_t steps = 0;                 // iterations over which it grew
  std::vector<std::size_t> blocks = {};  // indices in Timeline::blocks(), by group
  std::size_t lines = 0;                 // stacks that allocated them
};

// Most bytes first; none where nothing piles up.
std::vector<LeakGrowth> FindLeakGrowths(const timeline::Timeline& timeline, timeline::EventIndex moment,
                                        const trace::StackTable* stacks, const Steps& steps);

// The largest at the context's moment that is material (evidence.h); nullopt without one.
std::optional<LeakGrowth> LeakAt(const CauseContext& context);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_LEAK_SHAPES_H_
