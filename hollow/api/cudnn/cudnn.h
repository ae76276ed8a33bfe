// Shared by the surfaces of cuDNN: statuses, the handle, and descriptors of tensors and filters.
//
// Statuses are those of the version that the program brought: cudnn_graph.h of 9, cudnn_ops_infer.h of 8.
// Thread rule: any thread; one handle or descriptor is used by one thread at a time, as cuDNN asks.
#ifndef ASHLAR_HOLLOW_API_CUDNN_CUDNN_H_
#define ASHLAR_HOLLOW_API_CUDNN_CUDNN_H_

#include <cstddef>
#include <cstdint>

#include "hollow/api/objects.h"

namespace ashlar::hollow {

inline constexpr int kCudnnSuccess = 0;
int CudnnBadParam();
int CudnnNotSupported();
int CudnnNotInitialized();

struct CudnnHandle {
  void* stream = nullptr;
};
CudnnHandle* FindCudnn(const void* handle);

// CUDNN_DIM_MAX of cudnn_graph.h.
inline constexpr int kCudnnMostDims = 8;

// A tensor or a filter. Dimensions and strides are counted in elements; a filter's are packed by its format.
struct CudnnTensor {
  int data_type = 0;
  int format = 0;  // cudnnTensorFormat_t: 0 NCHW, 1 NHWC, 2 NCHW_VECT_C
  int dims = 0;
  int dim[kCudnnMostDims] = {};
  int stride[kCudnnMostDims] = {};
};
extern Objects<CudnnTensor> cudnn_tensors;
extern Objects<CudnnTensor> cudnn_filters;

// Sets packed strides for the format. False where a dimension is not positive, or there are too many.
bool ShapeCudnn(CudnnTensor* tensor, int data_type, int format, int dims, const int* dim);
// From the first byte to behind the last.
std::uint64_t CudnnBytes(const CudnnTensor& tensor);

struct CudnnDropout {
  float probability = 0;
  void* states = nullptr;
  std::uint64_t states_bytes = 0;
  std::uint64_t seed = 0;
};
extern Objects<CudnnDropout> cudnn_dropouts;

}  // namespace ashlar::hollow

// The functions that make and destroy what is in a list of objects.
#define ASHLAR_CUDNN_OBJECT(name, objects)                           \
  ASHLAR_SURFACE int cudnnCreate##name(void** object) {              \
    if (object == nullptr) return ::ashlar::hollow::CudnnBadParam(); \
    *object = (objects).Make();                                      \
    return ::ashlar::hollow::kCudnnSuccess;                          \
  }                                                                  \
  ASHLAR_SURFACE int cudnnDestroy##name(void* object) {              \
    if (object == nullptr || (objects).Destroy(object)) return 0;    \
    return ::ashlar::hollow::CudnnBadParam();                        \
  }

namespace ashlar::hollow {

// The layout of what a search for a convolution's algorithm answers: cudnnConvolutionFwdAlgoPerf_t and its two sisters,
// cudnn_cnn.h of 9.24 and cudnn_cnn_infer.h of 8.9.
struct ConvolutionPerformance {
  int algorithm;
  int status;     // cudnnStatus_t
  float time_ms;  // -1: not measured
  std::size_t workspace_bytes;
  int determinism;
  int math_type;
  int reserved[3];
};
static_assert(sizeof(ConvolutionPerformance) == 48);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDNN_CUDNN_H_
