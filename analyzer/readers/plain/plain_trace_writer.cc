#include "analyzer/readers/plain/plain_trace_writer.h"

#include "absl/strings/str_cat.h"

namespace ashlar::readers {

PlainTrace WritePlainTrace(const trace::RequestTrace& requests) {
  PlainTrace out;
  for (const trace::Op& request : requests.requests) {
    switch (request.kind) {
      case trace::OpKind::kAlloc:
        if (!requests.pools[request.pool].IsDefault()) ++out.pool_requests;
        absl::StrAppend(&out.text, "a ", request.id, " ", request.bytes, " ", Handle(request.stream), "\n");
        break;
      case trace::OpKind::kFree:
        absl::StrAppend(&out.text, "f ", request.id, "\n");
        break;
      case trace::OpKind::kRecordStream:
        absl::StrAppend(&out.text, "r ", request.id, " ", Handle(request.stream), "\n");
        break;
      case trace::OpKind::kStreamSync:
        ++out.stream_syncs;
        out.text += "y\n";
        break;
      case trace::OpKind::kDeviceSync:
        out.text += "y\n";
        break;
      case trace::OpKind::kEmptyCache:
        if (request.pool == 0) out.text += "e\n";
        if (request.pool != 0) ++out.pool_requests;
        break;
    }
  }
  return out;
}

}  // namespace ashlar::readers
