#include "allocator/plugins/torch_native/shared_pages.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#if !defined(SYS_pidfd_open)
#define SYS_pidfd_open 434
#endif
#if !defined(SYS_pidfd_getfd)
#define SYS_pidfd_getfd 438
#endif

namespace ashlar::torch {
namespace {

// The driver's functions that the runtime has not. The process has opened the driver.
struct PageCalls {
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemImportFromShareableHandle) import = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemRelease) release = nullptr;

  static const PageCalls& Instance() {
    static const PageCalls instance;
    return instance;
  }

 private:
  PageCalls() {
    Find("cuMemAddressReserve", reserve);
    Find("cuMemAddressFree", unreserve);
    Find("cuMemImportFromShareableHandle", import);
    Find("cuMemMap", map);
    Find("cuMemUnmap", unmap);
    Find("cuMemSetAccess", set_access);
    Find("cuMemRelease", release);
  }

  template <typename Function>
  static void Find(const char* name, Function& function) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    function = library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
    TORCH_CHECK(function != nullptr, "ashlar: getIpcDevPtr: the CUDA driver has no ", name);
  }
};

void Expect(CUresult code, const char* call) {
  TORCH_CHECK(code == CUDA_SUCCESS, "ashlar: getIpcDevPtr: ", call, " failed: CUresult ", static_cast<int>(code));
}

// Its files are reached through a descriptor of the process itself.
class ProcessFiles {
 public:
  explicit ProcessFiles(pid_t process) : process_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {
    if (process_ < 0) Fail("pidfd_open");
  }
  ~ProcessFiles() { close(process_); }
  ProcessFiles(const ProcessFiles&) = delete;
  ProcessFiles& operator=(const ProcessFiles&) = delete;

  int Take(int file) const {
    const int taken = static_cast<int>(syscall(SYS_pidfd_getfd, process_, file, 0));
    if (taken < 0) Fail("pidfd_getfd");
    return taken;
  }

 private:
  [[noreturn]] static void Fail(const char* call) {
    TORCH_CHECK(false, "ashlar: getIpcDevPtr: ", call, ": ", std::strerror(errno), ": the system does not let this ",
                "process take a tensor of an expandable segment from the other one: allocate it under ",
                "expandable_segments:False");
  }

  int process_;
};

}  // namespace

SharedPages::SharedPages(const SharedPagesHeader& header, const std::vector<int>& files)
    : device_(c10::cuda::current_device()), page_bytes_(header.page_bytes) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  // As much as an expandable segment of PyTorch's takes.
  reserved_bytes_ = (total_bytes + total_bytes / 8 + page_bytes_ - 1) / page_bytes_ * page_bytes_;
  TORCH_CHECK(files.size() <= reserved_bytes_ / page_bytes_, "ashlar: getIpcDevPtr: the handle is none: ", files.size(),
              " pages of ", page_bytes_, " bytes are more than the device has");
  Expect(PageCalls::Instance().reserve(&address_, reserved_bytes_, 0, 0, 0), "cuMemAddressReserve");
  try {
    Import(header.process, files);
    Map(files.size());
  } catch (...) {
    LetGo();
    throw;
  }
}

void SharedPages::Import(pid_t process, const std::vector<int>& files) {
  const ProcessFiles others(process);
  for (const int file : files) {
    const int taken = others.Take(file);
    unsigned long long handle = 0;
    const CUresult code = PageCalls::Instance().import(
        &handle, reinterpret_cast<void*>(static_cast<std::uintptr_t>(taken)), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(taken);
    Expect(code, "cuMemImportFromShareableHandle");
    handles_.push_back(handle);
  }
}

void SharedPages::Map(std::size_t count) {
  for (; mapped_ < count; ++mapped_)
    Expect(PageCalls::Instance().map(address_ + mapped_ * page_bytes_, page_bytes_, 0, handles_[mapped_], 0),
           "cuMemMap");
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  Expect(PageCalls::Instance().set_access(address_, count * page_bytes_, &access, 1), "cuMemSetAccess");
}

SharedPages::~SharedPages() {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device_));
  C10_CUDA_CHECK_WARN(cudaDeviceSynchronize());
  LetGo();
}

void SharedPages::LetGo() {
  const PageCalls& calls = PageCalls::Instance();
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    if (i < mapped_) calls.unmap(address_ + i * page_bytes_, page_bytes_);
    calls.release(handles_[i]);
  }
  calls.unreserve(address_, reserved_bytes_);
}

}  // namespace ashlar::torch
