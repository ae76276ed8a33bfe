// The layout of what a search for a convolution's algorithm answers: cudnnConvolutionFwdAlgoPerf_t and its two sisters,
// cudnn_cnn.h of 9.24 and cudnn_cnn_infer.h of 8.9.
#ifndef ASHLAR_HOLLOW_SURFACES_CUDNN_CONVOLUTION_H_
#define ASHLAR_HOLLOW_SURFACES_CUDNN_CONVOLUTION_H_

#include <cstddef>

namespace ashlar::hollow {

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

#endif  // ASHLAR_HOLLOW_SURFACES_CUDNN_CONVOLUTION_H_
