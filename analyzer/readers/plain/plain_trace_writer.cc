#include "analyzer/readers/plain/plain_trace_writer.h"

#include "absl/strings/str_cat.h"

namespace ashlar::readers {

PlainTrace WritePlainTrace(const trace::RequestTrace& requests) {
  PlainTrace out;
  for (const trace::Request& request : requests.requests) {
    switch (request.kind) {
      case trace::RequestKind::kAlloc:
        if (!requests.pools[request.pool].IsDefault()) ++out.pool_requests;
        absl::StrAppend(&out.text, "a ", request.id, " ", request.bytes, " ", Handle(request.stream), "\n");
        break;
      case trace::RequestKind::kFree:
        absl::StrAppend(&out.text, "f ", request.id, "\n");
        break;
      case trace::RequestKind::kRecordStream:
        absl::StrAppend(&out.text, "r ", request.id, " ", Handle(request.stream), "\n");
        break;
      case trace::RequestKind::kStreamSync:
        ++out.stream_syncs;
        out.text += "y\n";
        break;
      case trace::RequestKind::kDeviceSync:
        out.text += "y\n";
        break;
      case trace::RequestKind::kEmptyCache:
        if (request.pool == 0) out.text += "e\n";
        if (request.pool != 0) ++out.pool_requests;
        break;
    }
  }
  return out;
}

}  // namespace ashlar::readers
