// cuDNN: the handle, versions and statuses. Layers are work for the device (names/cudnn.inc).
//
// Signatures: cudnn_graph.h of 9.24, cudnn_ops_infer.h of 8.9.

#include "hollow/api/cudnn/cudnn.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "hollow/api/cudnn/asked_library.h"
#include "hollow/api/cudnn/backend_text.h"
#include "hollow/api/objects.h"
#include "hollow/api/real_library.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"
#include "hollow/process/process.h"

extern "C" int cudaFree(void* address);

namespace ashlar::hollow {
namespace {

constinit Objects<CudnnHandle> cudnn_handles(0xD0);
constinit std::atomic<int> cudnn_major{0};  // 0: not looked yet

// The version that the program brought, 9 where none is loaded yet.
int CudnnMajor() {
  int major = cudnn_major.load(std::memory_order_relaxed);
  if (major != 0) return major;
  major = RealMajor("libcudnn.so.");
  if (major == 0) return 9;
  cudnn_major.store(major, std::memory_order_relaxed);
  return major;
}

// 0 where the program brought none.
std::size_t BroughtVersion() {
  const auto real = reinterpret_cast<std::size_t (*)()>(RealFunction("libcudnn.so.", "cudnnGetVersion"));
  return real == nullptr ? 0 : real();
}

const char* CudnnStatusName(int status) {
  switch (status) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case 1:
    case 1001:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case 3:
    case 2000:
      return "CUDNN_STATUS_BAD_PARAM";
    case 9:
    case 3000:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_UNKNOWN";
  }
}

struct CudnnCallback {
  std::atomic<unsigned> mask{0};
  std::atomic<void*> data{nullptr};
  std::atomic<void*> function{nullptr};
};
constinit CudnnCallback cudnn_callback;

}  // namespace

int CudnnBadParam() { return CudnnMajor() < 9 ? 3 : 2000; }
int CudnnNotSupported() { return CudnnMajor() < 9 ? 9 : 3000; }
int CudnnNotInitialized() { return CudnnMajor() < 9 ? 1 : 1001; }

CudnnHandle* FindCudnn(const void* handle) { return cudnn_handles.Find(handle); }

int LaunchCudnn(void* handle) {
  const CudnnHandle* mine = FindCudnn(handle);
  if (mine == nullptr) return CudnnBadParam();
  CountLaunch(mine->stream);
  return kCudnnSuccess;
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cudnnCreate(void** handle) {
  if (handle == nullptr) return CudnnBadParam();
  if (cudaFree(nullptr) != 0) return CudnnNotInitialized();  // it makes the device's context, as the library does
  *handle = cudnn_handles.Make();
  NoteCudnn({.library = RealPath("libcudnn.so."),
             .cublaslt = RealPath("libcublasLt.so."),
             .device = CudnnDeviceText(TheSettings(), 0),
             .version = BroughtVersion(),
             .is_asked = IsCudnnAsked()});
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnDestroy(void* handle) {
  return cudnn_handles.Destroy(handle) ? kCudnnSuccess : CudnnNotInitialized();
}
ASHLAR_SURFACE int cudnnSetStream(void* handle, void* stream) {
  CudnnHandle* mine = FindCudnn(handle);
  if (mine == nullptr) return CudnnBadParam();
  mine->stream = stream;
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetStream(void* handle, void** stream) {
  const CudnnHandle* mine = FindCudnn(handle);
  if (mine == nullptr || stream == nullptr) return CudnnBadParam();
  *stream = mine->stream;
  return kCudnnSuccess;
}

// 9.24.0, where the program brought none.
ASHLAR_SURFACE std::size_t cudnnGetVersion() {
  const std::size_t brought = BroughtVersion();
  return brought == 0 ? 92'400 : brought;
}
ASHLAR_SURFACE std::size_t cudnnGetCudartVersion() {
  const auto real = reinterpret_cast<std::size_t (*)()>(RealFunction("libcudnn.so.", "cudnnGetCudartVersion"));
  return real == nullptr ? 13'000 : real();
}
// The newest architecture that the library has kernels for: no bound here.
ASHLAR_SURFACE std::size_t cudnnGetMaxDeviceVersion() { return 9'999; }
ASHLAR_SURFACE int cudnnGetProperty(int type, int* value) {
  return RealProperty("libcudnn.so.", "cudnnGetProperty", 92'400, type, value) ? kCudnnSuccess : CudnnBadParam();
}
ASHLAR_SURFACE const char* cudnnGetErrorString(int status) {
  return RealText("libcudnn.so.", "cudnnGetErrorString", status, CudnnStatusName(status));
}
ASHLAR_SURFACE void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (message == nullptr || size == 0) return;
  std::snprintf(message, size, "the hollow device keeps no message of cuDNN");
}
// A kernel never runs, so that none fails.
ASHLAR_SURFACE int cudnnQueryRuntimeError(void* handle, int* status, int, void*) {
  if (FindCudnn(handle) == nullptr || status == nullptr) return CudnnBadParam();
  *status = kCudnnSuccess;
  return kCudnnSuccess;
}

// The parts of the library are of one version: they are all this one.
ASHLAR_SURFACE int cudnnGraphVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnOpsVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnCnnVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnAdvVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnOpsInferVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnOpsTrainVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnCnnInferVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnCnnTrainVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnAdvInferVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnAdvTrainVersionCheck() { return kCudnnSuccess; }

// There is nothing to log: the settings are kept, and the function is never called.
ASHLAR_SURFACE int cudnnSetCallback(unsigned mask, void* data, void* function) {
  cudnn_callback.mask = mask;
  cudnn_callback.data = data;
  cudnn_callback.function = function;
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetCallback(unsigned* mask, void** data, void** function) {
  if (mask != nullptr) *mask = cudnn_callback.mask;
  if (data != nullptr) *data = cudnn_callback.data;
  if (function != nullptr) *function = cudnn_callback.function;
  return kCudnnSuccess;
}

// cuDNN: descriptors of tensors and filters, which answer what they were set to.
//
// Signatures: cudnn_ops.h of 9.24, cudnn_ops_infer.h of 8.9.

namespace ashlar::hollow {

constinit Objects<CudnnTensor> cudnn_tensors(0xD1);
constinit Objects<CudnnTensor> cudnn_filters(0xD2);

bool ShapeCudnn(CudnnTensor* tensor, int data_type, int format, int dims, const int* dim) {
  if (dims < 1 || dims > kCudnnMostDims || dim == nullptr || format < 0 || format > 2) return false;
  if (CudnnTypeBytes(data_type) == 0 || std::any_of(dim, dim + dims, [](int one) { return one <= 0; })) return false;
  CudnnTensor made{data_type, format, dims, {}, {}};
  std::copy(dim, dim + dims, made.dim);
  int step = 1;
  const bool channels_last = format == 1 && dims > 2;
  if (channels_last) {
    made.stride[1] = 1;
    step = dim[1];
  }
  for (int i = dims - 1; i >= 0; --i) {
    if (channels_last && i == 1) continue;
    made.stride[i] = step;
    step *= dim[i];
  }
  *tensor = made;
  return true;
}

std::uint64_t CudnnBytes(const CudnnTensor& tensor) {
  std::uint64_t last = 0;
  for (int i = 0; i < tensor.dims; ++i) {
    last += static_cast<std::uint64_t>(tensor.dim[i] - 1) * static_cast<std::uint64_t>(tensor.stride[i]);
  }
  return tensor.dims == 0 ? 0 : (last + 1) * CudnnTypeBytes(tensor.data_type);
}

namespace {

int ShapeOf(CudnnTensor* tensor, int data_type, int format, int dims, const int* dim) {
  return tensor != nullptr && ShapeCudnn(tensor, data_type, format, dims, dim) ? kCudnnSuccess : CudnnBadParam();
}

void WriteInt(int* to, int value) {
  if (to != nullptr) *to = value;
}

int DescribeTensor(const CudnnTensor* tensor, int wanted, int* data_type, int* format, int* dims, int* dim,
                   int* stride) {
  if (tensor == nullptr || wanted < 0) return CudnnBadParam();
  WriteInt(data_type, tensor->data_type);
  WriteInt(format, tensor->format);
  WriteInt(dims, tensor->dims);
  for (int i = 0; i < std::min(wanted, tensor->dims); ++i) {
    if (dim != nullptr) dim[i] = tensor->dim[i];
    if (stride != nullptr) stride[i] = tensor->stride[i];
  }
  return kCudnnSuccess;
}

int SizeOf(const CudnnTensor* tensor, std::size_t* bytes) {
  if (tensor == nullptr || bytes == nullptr) return CudnnBadParam();
  *bytes = CudnnBytes(*tensor);
  return kCudnnSuccess;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_CUDNN_OBJECT(TensorDescriptor, cudnn_tensors)
ASHLAR_CUDNN_OBJECT(FilterDescriptor, cudnn_filters)

ASHLAR_SURFACE int cudnnSetTensor4dDescriptor(void* tensor, int format, int type, int n, int c, int h, int w) {
  const int dim[] = {n, c, h, w};
  return ShapeOf(cudnn_tensors.Find(tensor), type, format, 4, dim);
}
ASHLAR_SURFACE int cudnnSetTensorNdDescriptorEx(void* tensor, int format, int type, int dims, const int* dim) {
  return ShapeOf(cudnn_tensors.Find(tensor), type, format, dims, dim);
}
ASHLAR_SURFACE int cudnnSetTensorNdDescriptor(void* tensor, int type, int dims, const int* dim, const int* stride) {
  CudnnTensor* mine = cudnn_tensors.Find(tensor);
  const int status = stride == nullptr ? CudnnBadParam() : ShapeOf(mine, type, 0, dims, dim);
  if (status != 0) return status;
  std::copy(stride, stride + dims, mine->stride);
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnSetTensor4dDescriptorEx(void* tensor, int type, int n, int c, int h, int w, int n_stride,
                                                int c_stride, int h_stride, int w_stride) {
  const int dim[] = {n, c, h, w};
  const int stride[] = {n_stride, c_stride, h_stride, w_stride};
  return cudnnSetTensorNdDescriptor(tensor, type, 4, dim, stride);
}
ASHLAR_SURFACE int cudnnGetTensorNdDescriptor(void* tensor, int wanted, int* type, int* dims, int* dim, int* stride) {
  return DescribeTensor(cudnn_tensors.Find(tensor), wanted, type, nullptr, dims, dim, stride);
}
ASHLAR_SURFACE int cudnnGetTensor4dDescriptor(void* tensor, int* type, int* n, int* c, int* h, int* w, int* n_stride,
                                              int* c_stride, int* h_stride, int* w_stride) {
  const CudnnTensor* mine = cudnn_tensors.Find(tensor);
  if (mine == nullptr || mine->dims != 4) return CudnnBadParam();
  WriteInt(type, mine->data_type);
  int* const dim[] = {n, c, h, w};
  int* const stride[] = {n_stride, c_stride, h_stride, w_stride};
  for (int i = 0; i < 4; ++i) {
    WriteInt(dim[i], mine->dim[i]);
    WriteInt(stride[i], mine->stride[i]);
  }
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetTensorSizeInBytes(void* tensor, std::size_t* bytes) {
  return SizeOf(cudnn_tensors.Find(tensor), bytes);
}

ASHLAR_SURFACE int cudnnSetFilter4dDescriptor(void* filter, int type, int format, int k, int c, int h, int w) {
  const int dim[] = {k, c, h, w};
  return ShapeOf(cudnn_filters.Find(filter), type, format, 4, dim);
}
ASHLAR_SURFACE int cudnnSetFilterNdDescriptor(void* filter, int type, int format, int dims, const int* dim) {
  return ShapeOf(cudnn_filters.Find(filter), type, format, dims, dim);
}
ASHLAR_SURFACE int cudnnGetFilterNdDescriptor(void* filter, int wanted, int* type, int* format, int* dims, int* dim) {
  return DescribeTensor(cudnn_filters.Find(filter), wanted, type, format, dims, dim, nullptr);
}
ASHLAR_SURFACE int cudnnGetFilter4dDescriptor(void* filter, int* type, int* format, int* k, int* c, int* h, int* w) {
  const CudnnTensor* mine = cudnn_filters.Find(filter);
  if (mine == nullptr || mine->dims != 4) return CudnnBadParam();
  int dim[4] = {};
  DescribeTensor(mine, 4, type, format, nullptr, dim, nullptr);
  int* const to[] = {k, c, h, w};
  for (int i = 0; i < 4; ++i) WriteInt(to[i], dim[i]);
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetFilterSizeInBytes(void* filter, std::size_t* bytes) {
  return SizeOf(cudnn_filters.Find(filter), bytes);
}
