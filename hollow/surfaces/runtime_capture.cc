// CUDA's runtime: captures of streams. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.
#include <cstdint>

#include "hollow/surfaces/cuda_capture.h"
#include "hollow/surfaces/runtime_call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaStreamBeginCapture(void* stream, int mode) {
  return Locked([&](Process& process) { return BeginCapture(process, stream, mode); });
}

ASHLAR_SURFACE int cudaStreamBeginCaptureToGraph(void* stream, void* graph, Node* const* after, const void*,
                                                 std::size_t count, int mode) {
  return Locked([&](Process& process) { return BeginCaptureInto(process, stream, mode, graph, after, count); });
}

ASHLAR_SURFACE int cudaStreamEndCapture(void* stream, void** graph) {
  return Locked([&](Process& process) { return EndCapture(process, stream, graph); });
}

ASHLAR_SURFACE int cudaStreamIsCapturing(void* stream, int* status) {
  return Locked([&](Process& process) { return ReadCapture(process, stream, {status}); });
}

// CUDA 11 and 12 export this name with three arguments, CUDA 13 with seven.
ASHLAR_SURFACE int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id, void** graph,
                                            Node* const** after, const void** edges, std::size_t* count) {
  const CaptureOut out =
      RuntimeMajor() < 13 ? CaptureOut{status, id} : CaptureOut{status, id, graph, after, edges, count};
  return Locked([&](Process& process) { return ReadCapture(process, stream, out); });
}
ASHLAR_SURFACE int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                                               Node* const** after, std::size_t* count) {
  return Locked(
      [&](Process& process) { return ReadCapture(process, stream, {status, id, graph, after, nullptr, count}); });
}
ASHLAR_SURFACE int cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph,
                                               Node* const** after, const void** edges, std::size_t* count) {
  return Locked(
      [&](Process& process) { return ReadCapture(process, stream, {status, id, graph, after, edges, count}); });
}

namespace {

int UpdateAfter(void* stream, Node* const* nodes, std::size_t count, unsigned flags) {
  return Locked([&](Process& process) { return SetCaptureAfter(process, stream, nodes, count, flags); });
}

}  // namespace

ASHLAR_SURFACE int cudaStreamUpdateCaptureDependencies_v2(void* stream, Node* const* nodes, const void*,
                                                          std::size_t count, unsigned flags) {
  return UpdateAfter(stream, nodes, count, flags);
}
// CUDA 11 and 12: (stream, nodes, count, flags); CUDA 13 has the edges' data third.
ASHLAR_SURFACE int cudaStreamUpdateCaptureDependencies(void* stream, Node* const* nodes, std::uint64_t third,
                                                       std::uint64_t fourth, unsigned flags) {
  if (RuntimeMajor() < 13) return UpdateAfter(stream, nodes, third, static_cast<unsigned>(fourth));
  return UpdateAfter(stream, nodes, fourth, flags);
}

ASHLAR_SURFACE int cudaThreadExchangeStreamCaptureMode(int* mode) { return Last(ExchangeCaptureMode(mode)); }

ASHLAR_SAME(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture);
ASHLAR_SAME(cudaStreamBeginCaptureToGraph_ptsz, cudaStreamBeginCaptureToGraph);
ASHLAR_SAME(cudaStreamEndCapture_ptsz, cudaStreamEndCapture);
ASHLAR_SAME(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing);
ASHLAR_SAME(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo);
ASHLAR_SAME(cudaStreamGetCaptureInfo_v2_ptsz, cudaStreamGetCaptureInfo_v2);
ASHLAR_SAME(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo_v3);
ASHLAR_SAME(cudaStreamUpdateCaptureDependencies_ptsz, cudaStreamUpdateCaptureDependencies);
ASHLAR_SAME(cudaStreamUpdateCaptureDependencies_v2_ptsz, cudaStreamUpdateCaptureDependencies_v2);
