// ASHLAR_HOST_DEVICE before a function that both compilers build.
#ifndef ASHLAR_KERNELS_OPS_HOST_DEVICE_H_
#define ASHLAR_KERNELS_OPS_HOST_DEVICE_H_

#ifdef __CUDACC__
#define ASHLAR_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define ASHLAR_HOST_DEVICE inline
#endif

#endif  // ASHLAR_KERNELS_OPS_HOST_DEVICE_H_
