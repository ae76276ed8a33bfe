// cuDNN: descriptors of tensors and filters, which answer what they were set to.
//
// Signatures: cudnn_ops.h of 9.24, cudnn_ops_infer.h of 8.9.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hollow/surfaces/cudnn.h"
#include "hollow/surfaces/data_type.h"
#include "hollow/surfaces/surface.h"

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
