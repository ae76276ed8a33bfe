#include "allocator/c/error.h"

#include <exception>
#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::c {
namespace {

thread_local std::string last_text;
thread_local const char* last_error = "";

ashlar_status NumberOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return ASHLAR_OUT_OF_MEMORY;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:  // of a file, and the next
    case absl::StatusCode::kPermissionDenied:
      return ASHLAR_INVALID_ARGUMENT;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
      return ASHLAR_FAILED_PRECONDITION;
    case absl::StatusCode::kUnavailable:
      return ASHLAR_UNAVAILABLE;
    case absl::StatusCode::kInternal:  // what devices answer (allocator/device/cuda_call.cc)
    case absl::StatusCode::kDataLoss:  // a lost device
      return ASHLAR_DEVICE_ERROR;
    default:
      return ASHLAR_INTERNAL;
  }
}

}  // namespace

ashlar_status Fail(const absl::Status& status) noexcept {
  try {
    last_text = std::string(status.message());
    last_error = last_text.c_str();
  } catch (const std::exception&) {
    last_error = "no host memory is left for the text of this error";
  }
  return NumberOf(status.code());
}

ashlar_status FailAtSize(const char* name) noexcept {
  return Fail(absl::InvalidArgumentError(
      absl::StrCat(name, ": struct_size is not set: write sizeof(", name, ") into it before the call")));
}

}  // namespace ashlar::c

extern "C" const char* ashlar_last_error(void) { return ashlar::c::last_error; }
