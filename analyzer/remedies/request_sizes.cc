#include "analyzer/remedies/request_sizes.h"

#include <algorithm>

#include "allocator/policy/size_rule.h"

namespace ashlar::remedies {
namespace {

std::vector<RequestSize> Counted(std::vector<RequestSize> sizes) {
  std::sort(sizes.begin(), sizes.end(), [](const RequestSize& a, const RequestSize& b) { return a.bytes < b.bytes; });
  std::vector<RequestSize> out;
  for (const RequestSize& size : sizes) {
    if (!out.empty() && out.back().bytes == size.bytes) {
      out.back().count += size.count;
    } else {
      out.push_back(size);
    }
  }
  return out;
}

}  // namespace

std::vector<RequestSize> SizesOf(const trace::RequestTrace& requests) {
  std::vector<RequestSize> out;
  for (const trace::Op& request : requests.requests) {
    if (request.kind != trace::OpKind::kAlloc || request.bytes == 0) continue;
    if (request.bytes <= policy::kMaxRequestBytes) out.push_back({request.bytes, 1});
  }
  return Counted(std::move(out));
}

std::vector<RequestSize> MergedSizes(const std::vector<RequestSize>& a, const std::vector<RequestSize>& b) {
  std::vector<RequestSize> out = a;
  out.insert(out.end(), b.begin(), b.end());
  return Counted(std::move(out));
}

}  // namespace ashlar::remedies
