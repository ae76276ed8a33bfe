#include "allocator/api/c/handle.h"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ashlar.h"

namespace ashlar::c {
namespace {

struct LastError {
  const char* shown = "no host memory is left for the text of this error";
  std::string text;
};

// Each thread's last one. By a key: a library that is opened late gets little thread-local memory.
class LastErrors {
 public:
  LastErrors() : has_key_(pthread_key_create(&key_, [](void* last) { delete static_cast<LastError*>(last); }) == 0) {}
  ~LastErrors() {
    if (has_key_.exchange(false)) pthread_key_delete(key_);  // threads may outlive a library that is closed
  }
  LastErrors(const LastErrors&) = delete;
  LastErrors& operator=(const LastErrors&) = delete;

  // nullptr: no call of this thread has failed.
  const LastError* Find() const { return has_key_ ? static_cast<LastError*>(pthread_getspecific(key_)) : nullptr; }
  // Throws std::bad_alloc.
  void Set(absl::string_view text) {
    if (!has_key_) return;
    auto last = std::make_unique<LastError>();
    delete static_cast<LastError*>(pthread_getspecific(key_));
    pthread_setspecific(key_, nullptr);
    if (pthread_setspecific(key_, last.get()) != 0) return;
    LastError& kept = *last.release();
    kept.text = std::string(text);
    kept.shown = kept.text.c_str();
  }

 private:
  pthread_key_t key_{};
  std::atomic<bool> has_key_;
};
LastErrors last_errors;

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
    case absl::StatusCode::kInternal:  // what devices answer (allocator/device/cuda_driver.cc)
    case absl::StatusCode::kDataLoss:  // a lost device
      return ASHLAR_DEVICE_ERROR;
    default:
      return ASHLAR_INTERNAL;
  }
}

}  // namespace

ashlar_status Fail(const absl::Status& status) noexcept {
  try {
    last_errors.Set(status.message());
  } catch (const std::exception&) {  // what is shown says so
  }
  return NumberOf(status.code());
}

ashlar_status FailAtSize(const char* name) noexcept {
  return Fail(absl::InvalidArgumentError(
      absl::StrCat(name, ": struct_size is not set: write sizeof(", name, ") into it before the call")));
}

}  // namespace ashlar::c

extern "C" const char* ashlar_last_error(void) {
  const ashlar::c::LastError* const last = ashlar::c::last_errors.Find();
  return last == nullptr ? "" : last->shown;
}

static_assert(ASHLAR_SONAME == ASHLAR_ABI_VERSION, "allocator/api/c/CMakeLists.txt has the number of include/ashlar.h");

extern "C" {

uint32_t ashlar_abi_version(void) { return ASHLAR_ABI_VERSION; }
const char* ashlar_version(void) { return ASHLAR_VERSION; }

}  // extern "C"
