// The answers of the hollow device's calls: CUDA's own numbers, which the driver and the runtime share since CUDA 10.1.
//
// Source: cuda.h (CUresult) and driver_types.h (cudaError) of CUDA 13.0.
#ifndef ASHLAR_HOLLOW_MODEL_ERROR_H_
#define ASHLAR_HOLLOW_MODEL_ERROR_H_

namespace ashlar::hollow {

enum class [[nodiscard]] Error : int {
  kNone = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidMemcpyDirection = 21,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kPeerAccessUnsupported = 217,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kPeerAccessAlreadyEnabled = 704,
  kPeerAccessNotEnabled = 705,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kLaunchFailure = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kInvalidResourceType = 914,
  kInvalidResourceConfiguration = 915,
  kUnknown = 999,
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_ERROR_H_
