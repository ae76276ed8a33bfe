# Finds the CUDA toolkit. Sets ASHLAR_HAVE_CUDA; where it is ON, the target CUDA::cudart_static exists and a folder may
# add its CUDA sources:
#   if(ASHLAR_HAVE_CUDA)
#     target_sources(ashlar_allocator PRIVATE cuda_api_system.cc)
#   endif()
# Nothing links libcuda: the driver's calls are looked up through the runtime, so that a program starts without a driver.
set(ASHLAR_CUDA AUTO CACHE STRING "Build the CUDA parts: AUTO (where the toolkit is found), ON (required) or OFF")
set_property(CACHE ASHLAR_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ASHLAR_CUDA_MINIMUM 12.0)
set(ASHLAR_HAVE_CUDA OFF)

string(TOUPPER "${ASHLAR_CUDA}" ashlar_cuda)
if(NOT ashlar_cuda MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "ASHLAR_CUDA=${ASHLAR_CUDA} is not one of AUTO, ON, OFF")
endif()

if(ashlar_cuda STREQUAL "OFF")
  message(STATUS "CUDA: off (ASHLAR_CUDA=OFF)")
else()
  find_package(CUDAToolkit ${ASHLAR_CUDA_MINIMUM} QUIET)
  if(CUDAToolkit_FOUND)
    set(ASHLAR_HAVE_CUDA ON)
    message(STATUS "CUDA: toolkit ${CUDAToolkit_VERSION} in ${CUDAToolkit_BIN_DIR}")
  elseif(ashlar_cuda STREQUAL "ON")
    message(FATAL_ERROR "ASHLAR_CUDA=ON, but no CUDA toolkit >= ${ASHLAR_CUDA_MINIMUM} was found: put nvcc on PATH, "
                        "set CUDAToolkit_ROOT, or configure with ASHLAR_CUDA=AUTO or OFF")
  else()
    message(STATUS "CUDA: no toolkit >= ${ASHLAR_CUDA_MINIMUM} found, building without (ASHLAR_CUDA=AUTO)")
  endif()
endif()
