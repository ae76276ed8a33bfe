#include "analyzer/readers/plain/plain_trace_writer.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::readers {
namespace {
constexpr std::size_t kTracePieceBytes = 1 << 16;
}

PlainTraceLosses WritePlainTrace(const trace::RequestTrace& requests, ByteSink& out) {
  PlainTraceLosses lost;
  std::string piece;
  for (const trace::Op& request : requests.requests) {
    if (piece.size() >= kTracePieceBytes) {
      out.Append(piece);
      piece.clear();
    }
    switch (request.kind) {
      case trace::OpKind::kAlloc:
        if (!requests.pools[request.pool].IsDefault()) ++lost.pool_requests;
        absl::StrAppend(&piece, "a ", request.id, " ", request.bytes, " ", Handle(request.stream), "\n");
        break;
      case trace::OpKind::kFree:
        absl::StrAppend(&piece, "f ", request.id, "\n");
        break;
      case trace::OpKind::kRecordStream:
        absl::StrAppend(&piece, "r ", request.id, " ", Handle(request.stream), "\n");
        break;
      case trace::OpKind::kStreamSync:
        ++lost.stream_syncs;
        piece += "y\n";
        break;
      case trace::OpKind::kDeviceSync:
        piece += "y\n";
        break;
      case trace::OpKind::kEmptyCache:
        if (request.pool == 0) piece += "e\n";
        if (request.pool != 0) ++lost.pool_requests;
        break;
    }
  }
  out.Append(piece);
  return lost;
}

}  // namespace ashlar::readers
