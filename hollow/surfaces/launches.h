// Work that is given to a library by its handle: counted on the handle's stream, refused where the handle is not one.
//
// Each answers the library's own status: 0, or that it was not initialised. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SURFACES_LAUNCHES_H_
#define ASHLAR_HOLLOW_SURFACES_LAUNCHES_H_

namespace ashlar::hollow {

int LaunchCublas(void* handle);
int LaunchCudnn(void* handle);
int LaunchCurand(void* generator);
int LaunchCufft(int plan);
int LaunchCusparse(void* handle);
int LaunchCusolver(void* handle);  // dense, or of several devices

// 0 where the handle is one.
int KnownCusparse(void* handle);
int KnownCusolver(void* handle);

// CUSPARSE_STATUS_INVALID_VALUE of cusparse.h, CUSOLVER_STATUS_INVALID_VALUE of cusolver_common.h.
inline constexpr int kCusparseInvalidValue = 3;
inline constexpr int kCusolverInvalidValue = 3;
// CUDNN_STATUS_BAD_PARAM and NOT_SUPPORTED, whose numbers differ between versions 8 and 9.
int CudnnBadParam();
int CudnnNotSupported();

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_LAUNCHES_H_
