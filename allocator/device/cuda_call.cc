#include "allocator/device/cuda_call.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::device {
namespace {

absl::string_view WhyGone(int code) {
  if (code == kCudaErrorDeinitialized) return " (the CUDA driver is shut down: the program ends)";
  if (code == kCudaErrorInvalidContext || code == kCudaErrorContextIsDestroyed) {
    return " (the device's context is gone, as after cudaDeviceReset: what was allocated on it is lost)";
  }
  return "";
}

}  // namespace

absl::Status CudaStatus(const CudaDriver& cuda, int ordinal, int code, absl::string_view call, OutOfMemoryMeans means) {
  if (code == kCudaSuccess) [[likely]]
    return absl::OkStatus();
  const absl::string_view why_gone = WhyGone(code);
  const std::string message =
      absl::StrCat(call, " failed on CUDA device ", ordinal, ": ", cuda.ErrorText(code), why_gone);
  if (!why_gone.empty()) return absl::DataLossError(message);
  const bool is_exhausted = code == kCudaErrorOutOfMemory && means == OutOfMemoryMeans::kDeviceMemory;
  return is_exhausted ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

RelaxedCaptureScope::RelaxedCaptureScope(const CudaDriver& cuda, int ordinal, absl::Status* last_error)
    : cuda_(cuda), ordinal_(ordinal), last_error_(last_error), is_set_(Exchange()) {}

RelaxedCaptureScope::~RelaxedCaptureScope() {
  if (is_set_) Exchange();
}

bool RelaxedCaptureScope::Exchange() {
  const absl::Status status =
      CudaStatus(cuda_, ordinal_, cuda_.exchange_capture_mode(&mode_), "cuThreadExchangeStreamCaptureMode");
  if (!status.ok()) *last_error_ = status;
  return status.ok();
}

CudaContextScope::CudaContextScope(const CudaDriver& cuda, const KnownContext& known, int ordinal,
                                   const absl::Status& refused, absl::Status* restore_error)
    : cuda_(cuda), ordinal_(ordinal), restore_error_(restore_error), status_(refused) {
  if (status_.ok()) Check(known);
  if (!status_.ok()) return;
  CudaContext current = nullptr;
  status_ = CudaStatus(cuda_, ordinal_, cuda_.context_get_current(&current), "cuCtxGetCurrent");
  if (!status_.ok() || current == known.context) return;
  status_ = CudaStatus(cuda_, ordinal_, cuda_.context_push(known.context), "cuCtxPushCurrent");
  is_pushed_ = status_.ok();
}

// Where a context was reset the runtime makes a new one under the same handle: only its number tells. A driver without
// numbers tells a reset until the new context is there.
void CudaContextScope::Check(const KnownContext& known) {
  bool is_same = true;
  if (cuda_.context_get_id.is_there()) {
    std::uint64_t id = 0;
    status_ = CudaStatus(cuda_, ordinal_, cuda_.context_get_id(known.context, &id), "cuCtxGetId");
    is_same = id == known.id;
  } else {
    unsigned flags = 0;
    int is_active = 0;
    const int code = cuda_.primary_get_state(known.device, &flags, &is_active);
    status_ = CudaStatus(cuda_, ordinal_, code, "cuDevicePrimaryCtxGetState");
    is_same = is_active != 0;
  }
  if (!status_.ok() || is_same) return;
  status_ = absl::DataLossError(
      absl::StrCat("CUDA device ", ordinal_, " was reset (cudaDeviceReset): what was allocated on it is lost"));
}

CudaContextScope::~CudaContextScope() {
  if (!is_pushed_) return;
  CudaContext popped = nullptr;
  const absl::Status status = CudaStatus(cuda_, ordinal_, cuda_.context_pop(&popped), "cuCtxPopCurrent");
  if (!status.ok()) *restore_error_ = status;
}

}  // namespace ashlar::device
