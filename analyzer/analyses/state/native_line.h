// "libggml-cuda.so alloc_buffer < alloc_tensor_range < load": what a stack of native frames was doing, innermost first:
// the functions of the program and its libraries, without those of CUDA, the C++ library and Thrust, which say what
// was called but not by whom.
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_NATIVE_LINE_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_NATIVE_LINE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/trace/stack_table.h"

namespace ashlar::analyses {

// Whether all frames are of code whose source is not known: a file of code, and no line.
bool IsNativeStack(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames);

// `frames` is not empty.
std::string NativeLine(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames);

// "ns::Buffer::grow" of "void ns::Buffer<float>::grow<int>(unsigned long)".
std::string ShortFunction(absl::string_view function);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_NATIVE_LINE_H_
