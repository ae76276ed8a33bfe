# Finds the CUDA toolkit, and nvcc where kernels are built. Sets ASHLAR_HAVE_CUDA; where it is ON, the target CUDA::cudart_static exists and a folder may
# add its CUDA sources:
#   if(ASHLAR_HAVE_CUDA)
#     target_sources(ashlar_allocator PRIVATE cuda_api_system.cc)
#   endif()
# Sets ASHLAR_HAVE_NVCC; where it is ON, the language CUDA is enabled, and a target of .cu files calls
#   ashlar_configure_cuda_target(target)
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

set(ASHLAR_HAVE_NVTX OFF)  # the header that names blocks to compute-sanitizer
if(ASHLAR_HAVE_CUDA)
  foreach(folder ${CUDAToolkit_INCLUDE_DIRS})
    if(EXISTS ${folder}/nvtx3/nvToolsExtMem.h)
      set(ASHLAR_HAVE_NVTX ON)
    endif()
  endforeach()
endif()

# Device code takes nvcc minutes and a sanitizer sees none of it, so only plain builds have it. A project that takes us
# in with add_subdirectory asks for it.
set(ASHLAR_CUDA_KERNELS ${PROJECT_IS_TOP_LEVEL} CACHE BOOL "Compile device code where nvcc is found")
set(ASHLAR_HAVE_NVCC OFF)
if(ASHLAR_HAVE_CUDA AND ASHLAR_CUDA_KERNELS AND NOT ASHLAR_SANITIZE AND NOT ASHLAR_FUZZ)
  if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80)  # and its PTX, which later devices compile when they load it; 70 and 75 on request
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # which CMake 3.25 does not know of nvcc 12
    endif()
    set(ASHLAR_HAVE_NVCC ON)
    message(STATUS "CUDA: device code for ${CMAKE_CUDA_ARCHITECTURES} by ${CMAKE_CUDA_COMPILER}")
  endif()
endif()

# Flags of a target that has .cu files.
function(ashlar_configure_cuda_target target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;--expt-relaxed-constexpr;--extended-lambda>")
  if(ASHLAR_WERROR)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
  endif()
endfunction()
