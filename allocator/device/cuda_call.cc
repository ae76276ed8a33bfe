#include "allocator/device/cuda_call.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::device {
namespace {

absl::string_view WhyGone(int code) {
  if (code == kCudaErrorUnloading) return " (the CUDA runtime is shut down: the program ends)";
  if (code == kCudaErrorInvalidContext || code == kCudaErrorContextDestroyed) {
    return " (the device's context is gone, as after cudaDeviceReset: what was allocated on it is lost)";
  }
  return "";
}

absl::Status Failed(int ordinal, int code, absl::string_view call, const std::string& text, OutOfMemoryMeans means) {
  const absl::string_view why_gone = WhyGone(code);
  const std::string message = absl::StrCat(call, " failed on CUDA device ", ordinal, ": ", text, why_gone);
  if (!why_gone.empty()) return absl::DataLossError(message);
  const bool is_exhausted = code == kCudaErrorMemoryAllocation && means == OutOfMemoryMeans::kDeviceMemory;
  return is_exhausted ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

}  // namespace

absl::Status RuntimeStatus(CudaApi& api, int ordinal, int code, absl::string_view call, OutOfMemoryMeans means) {
  if (code == kCudaSuccess) [[likely]]
    return absl::OkStatus();
  api.GetLastError();
  return Failed(ordinal, code, call, api.RuntimeErrorText(code), means);
}

absl::Status DriverStatus(CudaApi& api, int ordinal, int code, absl::string_view call, OutOfMemoryMeans means) {
  if (code == kCudaSuccess) [[likely]]
    return absl::OkStatus();
  return Failed(ordinal, code, call, api.DriverErrorText(code), means);
}

RelaxedCaptureScope::RelaxedCaptureScope(CudaApi& api, int ordinal, absl::Status* last_error)
    : api_(api), ordinal_(ordinal), last_error_(last_error), is_set_(Exchange()) {}

RelaxedCaptureScope::~RelaxedCaptureScope() {
  if (is_set_) Exchange();
}

bool RelaxedCaptureScope::Exchange() {
  const absl::Status status =
      RuntimeStatus(api_, ordinal_, api_.ExchangeCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode");
  if (!status.ok()) *last_error_ = status;
  return status.ok();
}

CudaContextScope::CudaContextScope(CudaApi& api, const KnownContext& known, int ordinal, const absl::Status& refused,
                                   absl::Status* restore_error)
    : api_(api), ordinal_(ordinal), restore_error_(restore_error), status_(refused) {
  if (status_.ok()) Check(known);
  if (!status_.ok()) return;
  CudaContext current{};
  status_ = DriverStatus(api_, ordinal_, api_.ContextGetCurrent(&current), "cuCtxGetCurrent");
  if (!status_.ok() || current == known.context) return;
  status_ = DriverStatus(api_, ordinal_, api_.ContextPush(known.context), "cuCtxPushCurrent");
  is_pushed_ = status_.ok();
}

// The runtime makes a new context where one was reset, under the same handle: only its number tells.
void CudaContextScope::Check(const KnownContext& known) {
  std::uint64_t id = 0;
  status_ = DriverStatus(api_, ordinal_, api_.ContextGetId(known.context, &id), "cuCtxGetId");
  if (!status_.ok() || id == known.id) return;
  status_ = absl::DataLossError(
      absl::StrCat("CUDA device ", ordinal_, " was reset (cudaDeviceReset): what was allocated on it is lost"));
}

CudaContextScope::~CudaContextScope() {
  if (!is_pushed_) return;
  CudaContext popped{};
  const absl::Status status = DriverStatus(api_, ordinal_, api_.ContextPop(&popped), "cuCtxPopCurrent");
  if (!status.ok()) *restore_error_ = status;
}

}  // namespace ashlar::device
