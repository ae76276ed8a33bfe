// Units of bytes, and the types of streams and pools.
//
// Sizes and addresses are plain std::uint64_t whose name says the unit (`size_bytes`, `address`); a stream and a
// pool are types of their own, so that they cannot be swapped with a size. All intervals are half-open. Sizes print
// in binary units, with the base in the unit's name: 1.50 GiB = 1.5 * 2^30 bytes.
#ifndef ASHLAR_UNITS_H_
#define ASHLAR_UNITS_H_

#include <compare>
#include <cstdint>
#include <string>

#include "ashlar/export.h"

struct CUstream_st;  // CUDA's: cudaStream_t and CUstream point to it

namespace ashlar {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// A stream handle (cudaStream_t, CUstream) as an integer; 0 is the default stream. Orders as the integers do.
enum class Stream : std::uint64_t {};
constexpr std::uint64_t Handle(Stream stream) { return static_cast<std::uint64_t>(stream); }
// A cudaStream_t or CUstream as a Stream; nullptr is the default stream.
inline Stream ToStream(CUstream_st* stream) { return Stream{reinterpret_cast<std::uintptr_t>(stream)}; }

// A memory pool as PyTorch names it, (capture id, user id); {0, 0} is the default pool.
struct PoolId {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  auto operator<=>(const PoolId&) const = default;
  constexpr bool IsDefault() const { return first == 0 && second == 0; }
};

// "220.00 MiB", "1.26 GiB", "512 B": two decimals from KiB up, the largest unit that keeps the figure >= 1.
ASHLAR_EXPORT std::string FormatBytes(std::uint64_t bytes);

}  // namespace ashlar

#endif  // ASHLAR_UNITS_H_
