#include "allocator/device/cuda_driver.h"

#include <dlfcn.h>

#include <memory>

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

}  // namespace ashlar::device
