#include "hollow/surfaces/cuda_capture.h"

#include <utility>
#include <vector>

#include "hollow/surfaces/cuda_graphs.h"
#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/cuda_streams.h"

namespace ashlar::hollow {
namespace {

bool IsMode(int mode) { return mode >= 0 && mode <= static_cast<int>(CaptureMode::kRelaxed); }

}  // namespace

Error BeginCapture(Process& process, void* handle, int mode) {
  Stream* stream = StreamOf(process, handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  if (!IsMode(mode)) return Error::kInvalidValue;
  return process.streams.BeginCapture(*stream, static_cast<CaptureMode>(mode), ThreadNumber());
}

Error BeginCaptureInto(Process& process, void* handle, int mode, void* graph_handle, Node* const* after,
                       std::size_t count) {
  Stream* stream = StreamOf(process, handle);
  const Graph* graph = GraphOf(process, graph_handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  if (graph == nullptr || !IsMode(mode) || (after == nullptr && count > 0)) return Error::kInvalidValue;
  if (stream->capture != nullptr) return Error::kIllegalState;
  std::vector<Node*> nodes(after, after + count);
  for (const Node* node : nodes) {
    if (!graph->Has(node)) return Error::kInvalidValue;
  }
  std::unique_ptr<Graph> taken = TakeGraph(process, graph_handle);
  if (taken == nullptr) return Error::kIllegalState;  // another stream's work is being captured into it
  return process.streams.BeginCapture(*stream, static_cast<CaptureMode>(mode), ThreadNumber(), std::move(taken),
                                      std::move(nodes));
}

Error EndCapture(Process& process, void* handle, void** graph) {
  Stream* stream = StreamOf(process, handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  if (graph == nullptr) return Error::kInvalidValue;
  *graph = nullptr;
  std::unique_ptr<Graph> captured;
  const Error error = process.streams.EndCapture(*stream, ThreadNumber(), &captured);
  void* kept = captured == nullptr ? nullptr : KeepGraph(process, std::move(captured));
  if (error == Error::kNone) *graph = kept;
  return error;
}

Error ReadCapture(Process& process, void* handle, const CaptureOut& out) {
  if (out.status == nullptr) return Error::kInvalidValue;
  const Stream* stream = StreamOf(process, handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  *out.status = stream->capture == nullptr ? 0 : stream->capture->is_valid ? 1 : 2;
  if (*out.status != 1) return Error::kNone;
  thread_local std::vector<std::uint64_t> edges;
  edges.assign(stream->frontier.size(), 0);
  if (out.id != nullptr) *out.id = stream->capture->id;
  if (out.graph != nullptr) *out.graph = stream->capture->graph.get();
  if (out.after != nullptr) *out.after = stream->frontier.data();
  if (out.edges != nullptr) *out.edges = edges.data();
  if (out.count != nullptr) *out.count = stream->frontier.size();
  return Error::kNone;
}

Error SetCaptureAfter(Process& process, void* handle, Node* const* nodes, std::size_t count, unsigned flags) {
  Stream* stream = StreamOf(process, handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  if (stream->capture == nullptr) return Error::kIllegalState;
  if (flags > 1 || (nodes == nullptr && count > 0)) return Error::kInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    if (!stream->capture->graph->Has(nodes[i])) return Error::kInvalidValue;
  }
  if (flags == 1) stream->frontier.clear();
  stream->frontier.insert(stream->frontier.end(), nodes, nodes + count);
  return Error::kNone;
}

Error ExchangeCaptureMode(int* mode) {
  if (mode == nullptr || !IsMode(*mode)) return Error::kInvalidValue;
  const CaptureMode wanted = static_cast<CaptureMode>(*mode);
  *mode = static_cast<int>(ThreadCaptureMode());
  ThreadCaptureMode() = wanted;
  return Error::kNone;
}

}  // namespace ashlar::hollow
