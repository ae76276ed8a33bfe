// The sizes a program asks for, each with how often: what decides which settings can matter to it.
//
//   for (const RequestSize& size : SizesOf(requests)) ... // ascending
#ifndef ASHLAR_ANALYZER_REMEDIES_REQUEST_SIZES_H_
#define ASHLAR_ANALYZER_REMEDIES_REQUEST_SIZES_H_

#include <cstdint>
#include <vector>

#include "allocator/trace/request.h"

namespace ashlar::remedies {

struct RequestSize {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

// Ascending; requests of no bytes and those no device could hold are left out.
std::vector<RequestSize> SizesOf(const trace::RequestTrace& requests);

// The sizes of both lists, counts added.
std::vector<RequestSize> MergedSizes(const std::vector<RequestSize>& a, const std::vector<RequestSize>& b);

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_REQUEST_SIZES_H_
