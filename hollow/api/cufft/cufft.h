// The rule for the size of a cuFFT plan's work area.
//
// The rule is an assumption that follows what cuFFT's documentation tells: a transform takes temporary storage of about
// its own size, and one whose length has a large prime factor, which another algorithm computes, up to eight times
// that. Here: one array of complex numbers of the shape, times the batch; eight where a length has a prime factor above
// 127. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_API_CUFFT_CUFFT_H_
#define ASHLAR_HOLLOW_API_CUFFT_CUFFT_H_

#include <cstdint>
#include <vector>

namespace ashlar::hollow {

// Whether it has a prime factor above 127.
bool HasLargePrime(std::int64_t length);

// Bytes for transforms of these lengths; `element_bytes` is of a complex number.
std::uint64_t WorkAreaBytes(const std::vector<std::int64_t>& lengths, std::int64_t batch, std::uint64_t element_bytes);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUFFT_CUFFT_H_
