#include "allocator/device/cuda_call.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::device {
namespace {

absl::Status Failed(int ordinal, int code, absl::string_view call, const std::string& text, OutOfMemoryMeans means) {
  const std::string message = absl::StrCat(call, " failed on CUDA device ", ordinal, ": ", text);
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

CudaContextScope::CudaContextScope(CudaApi& api, CudaContext context, int ordinal, absl::Status* restore_error)
    : api_(api), ordinal_(ordinal), restore_error_(restore_error) {
  CudaContext current{};
  status_ = DriverStatus(api_, ordinal_, api_.ContextGetCurrent(&current), "cuCtxGetCurrent");
  if (!status_.ok() || current == context) return;
  status_ = DriverStatus(api_, ordinal_, api_.ContextPush(context), "cuCtxPushCurrent");
  is_pushed_ = status_.ok();
}

CudaContextScope::~CudaContextScope() {
  if (!is_pushed_) return;
  CudaContext popped{};
  const absl::Status status = DriverStatus(api_, ordinal_, api_.ContextPop(&popped), "cuCtxPopCurrent");
  if (!status.ok()) *restore_error_ = status;
}

}  // namespace ashlar::device
