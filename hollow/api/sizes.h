// Sizes of the libraries' elements and workspaces.
#ifndef ASHLAR_HOLLOW_API_SIZES_H_
#define ASHLAR_HOLLOW_API_SIZES_H_

#include <cstdarg>
#include <cstdint>
#include <initializer_list>

namespace ashlar::hollow {

// Bytes of an element by cudaDataType (library_types.h) and by cudnnDataType_t (cudnn_graph.h).

// Bits of a cudaDataType; 0 where the number is not known.
constexpr std::uint64_t CudaTypeBits(int type) {
  // 0 R_32F, 1 R_64F, 2 R_16F, 3 R_8I, 4 C_32F, 5 C_64F, 6 C_16F, 7 C_8I, 8 R_8U, 9 C_8U, 10 R_32I, 11 C_32I, 12 R_32U,
  // 13 C_32U, 14 R_16BF, 15 C_16BF, 16 R_4I, 17 C_4I, 18 R_4U, 19 C_4U, 20 R_16I, 21 C_16I, 22 R_16U, 23 C_16U, 24
  // R_64I, 25 C_64I, 26 R_64U, 27 C_64U, 28 R_8F_E4M3, 29 R_8F_E5M2, 30 R_8F_UE8M0, 31 R_6F_E2M3, 32 R_6F_E3M2, 33
  // R_4F_E2M1.
  constexpr std::uint8_t kBits[] = {32, 64, 16, 8,  64, 128, 32, 16, 8,   16, 32,  64, 32, 64, 16, 32, 4,
                                    8,  4,  8,  16, 32, 16,  32, 64, 128, 64, 128, 8,  8,  8,  6,  6,  4};
  return type >= 0 && type < static_cast<int>(sizeof(kBits)) ? kBits[type] : 0;
}
constexpr std::uint64_t CudaTypeBytes(int type) { return (CudaTypeBits(type) + 7) / 8; }

// Bytes of a cudnnDataType_t; 0 where the number is not known.
constexpr std::uint64_t CudnnTypeBytes(int type) {
  // 0 FLOAT, 1 DOUBLE, 2 HALF, 3 INT8, 4 INT32, 5 INT8x4, 6 UINT8, 7 UINT8x4, 8 INT8x32, 9 BFLOAT16, 10 INT64, 11
  // BOOLEAN, 12 FP8_E4M3, 13 FP8_E5M2, 14 FAST_FLOAT_FOR_FP8.
  constexpr std::uint8_t kBytes[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1, 1, 1, 4};
  return type >= 0 && type < static_cast<int>(sizeof(kBytes)) ? kBytes[type] : 0;
}

}  // namespace ashlar::hollow

// Sizes the scratch that a library asks of its caller. The assumption is that it asks for nothing.
//
// The true sizes depend on kernels that only a device can choose. So every function that answers the size of a
// workspace answers kWorkspaceBytes, and a report names that as an assumption. Sizes of what outlives a call, such as
// weights and states, are not workspaces: their surfaces count them. Thread rule: any thread.

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

#endif  // ASHLAR_HOLLOW_API_SIZES_H_
