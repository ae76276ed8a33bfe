// Groups the live blocks of one moment by the stack that allocated them, biggest first: who holds the memory.
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_LIVE_STACKS_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_LIVE_STACKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::analyses {

// "libggml-cuda.so alloc_buffer < alloc_tensor_range < load": what a stack of native frames was doing, innermost first:
// the functions of the program and its libraries, without those of CUDA, the C++ library and Thrust, which say what
// was called but not by whom.

// Whether all frames are of code whose source is not known: a file of code, and no line.
bool IsNativeStack(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames);

// `frames` is not empty.
std::string NativeLine(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames);

// "ns::Buffer::grow" of "void ns::Buffer<float>::grow<int>(unsigned long)".
std::string ShortFunction(absl::string_view function);

struct LiveStack {
  trace::StackId stack = trace::kNoStack;  // kNoStack: blocks whose stack the trace does not know
  std::uint64_t bytes = 0;                 // block sizes
  std::uint64_t blocks = 0;
};

// Equal bytes are ordered by stack id.
std::vector<LiveStack> LiveStacks(const timeline::State& state);

inline constexpr char kNoStackLabel[] = "no stack recorded";

// "model.py:211 forward": the innermost Python frame that is nearest to the user's own code (their files, then
// installed packages, then the framework); of a compiled program "linear_1 < model.py:12", the
// fx node and the line it was made from; of scopes "layer < forward"; of a native program NativeLine; else the
// autograd node or operator; kNoStackLabel without any.
std::string StackLabel(const trace::StackTable& stacks, trace::StackId stack);

// What tells a block of such a line from the others of it, then the line: "modeling_bert.py:350 forward < train.py:9
// main". The inner frame is that of the optimizer that made it, else the innermost outside PyTorch, else the innermost
// module of PyTorch. Empty: the line is all that the stack tells.
std::string PartLabel(const trace::StackTable& stacks, trace::StackId stack);

// The labels of the frames that are nearest to the user's own code, in the order given: of their files, else of
// installed packages, else of the framework. Their indices in `frames`.
std::vector<std::size_t> NearestFrames(absl::Span<const trace::Frame> frames);
std::string FrameLabel(const trace::Frame& frame);

// The same blocks by that label, biggest first, `most` at the most. Equal bytes are ordered by label. A line that holds
// more than half, such as one that calls a trainer, is told in parts (PartLabel).
struct LabelledStack {
  std::string label;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};
std::vector<LabelledStack> LiveLines(const timeline::State& state, const trace::StackTable& stacks, std::size_t most);

// The same blocks where nothing names them: by size and stream, most bytes first, `most` at the most. Equal bytes are
// ordered by size, then stream.
struct LiveSize {
  std::uint64_t block_bytes = 0;
  Stream stream{};
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};
std::vector<LiveSize> LiveSizes(const timeline::State& state, std::size_t most);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_LIVE_STACKS_H_
