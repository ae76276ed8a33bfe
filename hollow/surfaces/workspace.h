// Sizes the scratch that a library asks of its caller. The assumption is that it asks for nothing.
//
// The true sizes depend on kernels that only a device can choose. So every function that answers the size of a
// workspace answers kWorkspaceBytes, and a report names that as an assumption. Sizes of what outlives a call, such as
// weights and states, are not workspaces: their surfaces count them. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SURFACES_WORKSPACE_H_
#define ASHLAR_HOLLOW_SURFACES_WORKSPACE_H_

#include <cstdarg>
#include <cstdint>
#include <initializer_list>

namespace ashlar::hollow {

inline constexpr std::uint64_t kWorkspaceBytes = 0;

// Writes it to the arguments at `places` among those after the first (place 0) that are passed as integers; `bits` is
// 32 or 64. False where one of them is null; then nothing is written there.
bool WriteWorkspace(int bits, std::initializer_list<int> places, std::va_list after_first);

}  // namespace ashlar::hollow

// A function whose first argument is `first`: `known` is an expression that gives 0, or the status where it is no
// handle. An integer, a pointer and an enumeration travel in the order of the variable arguments, whatever floats stand
// between.
#define ASHLAR_SIZED_AFTER(name, bits, known, invalid, ...)                                  \
  ASHLAR_SURFACE __attribute__((weak)) int name(void* first, ...) {                          \
    if (const int status = (known); status != 0) return status;                              \
    std::va_list after_first;                                                                \
    va_start(after_first, first);                                                            \
    const bool written = ::ashlar::hollow::WriteWorkspace(bits, {__VA_ARGS__}, after_first); \
    va_end(after_first);                                                                     \
    return written ? 0 : (invalid);                                                          \
  }

#endif  // ASHLAR_HOLLOW_SURFACES_WORKSPACE_H_
