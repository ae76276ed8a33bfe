#include "allocator/device/cuda_driver.h"

#include <dlfcn.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::device {
namespace {

constexpr const char* kDriverLibrary = "libcuda.so.1";
constexpr int kOldestDriver = 11000;

std::string CudaVersionText(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

// RTLD_NOW: a library that is broken says so here, not in the middle of a call. RTLD_LOCAL: its names stay out of the
// program's way. A runtime in the program opens the same name, and both have the same driver. It is never closed:
// devices may outlive static destruction.
absl::StatusOr<const CudaDriver*> OpenDriver() {
  void* const library = dlopen(kDriverLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(absl::StrCat("no CUDA driver: ", dlerror(), " (NVIDIA's driver brings it)"));
  }
  std::unique_ptr<const CudaDriver> driver(new CudaDriver{CudaLookup(library)});
  const std::string& missing = driver->lookup.missing(CudaNeed::kAlways);
  if (missing.empty()) return driver.release();
  return absl::UnavailableError(absl::StrCat("the CUDA driver, of version ", driver->VersionText(), ", has no ",
                                             missing, ": install a driver of CUDA ", CudaVersionText(kOldestDriver),
                                             " or later"));
}

template <typename Function>
void TakeSymbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

CudaLookup::CudaLookup(void* library) : library_(library) {
  if (library == nullptr) return;
  TakeSymbol(library, "cuGetProcAddress_v2", ask_v2_);
  TakeSymbol(library, "cuGetProcAddress", ask_);
}

void* CudaLookup::Find(const char* name, int version, const char* exported, CudaNeed need) {
  void* found = nullptr;
  int code = kCudaSuccess;
  if (ask_v2_ != nullptr) {
    int why_not = 0;  // told by `found` as well
    code = ask_v2_(name, &found, version, kCudaLegacyStream, &why_not);
  } else if (ask_ != nullptr) {
    code = ask_(name, &found, version, kCudaLegacyStream);
  } else if (library_ != nullptr) {
    found = dlsym(library_, exported);
  }
  if (code == kCudaSuccess && found != nullptr) return found;
  std::string& missing = need == CudaNeed::kAlways ? missing_always_ : missing_virtual_memory_;
  if (need != CudaNeed::kIfThere && missing.empty())
    missing = absl::StrCat(name, " of CUDA ", CudaVersionText(version));
  return nullptr;
}

std::string CudaDriver::VersionText() const {
  int version = 0;
  const bool is_known = driver_get_version.is_there() && driver_get_version(&version) == kCudaSuccess;
  return is_known ? CudaVersionText(version) : "unknown";
}

std::string CudaDriver::ErrorText(int code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  get_error_name(code, &name);
  get_error_string(code, &text);
  return absl::StrCat(name != nullptr ? name : "an error unknown to the driver", ": ",
                      text != nullptr ? text : absl::StrCat("code ", code));
}

absl::StatusOr<const CudaDriver*> SystemCudaDriver() {
  static const absl::StatusOr<const CudaDriver*>& driver = *new absl::StatusOr<const CudaDriver*>(OpenDriver());
  return driver;
}

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
