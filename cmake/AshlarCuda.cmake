# Finds what the CUDA parts need. Each part is built only where all that it needs is there; ashlar_left_out keeps one
# line for every part that is not, and the end of the configure step prints them.
#
# Sets ASHLAR_HAVE_CUDA: a toolkit with its runtime is there. Programs that call it link the target ashlar_cuda_runtime.
# Sets ASHLAR_HAVE_NVTX: so is the header that names blocks to compute-sanitizer.
# Sets ASHLAR_HAVE_NVCC: device code is built. The language CUDA is enabled, ASHLAR_CUBLAS_INCLUDE_DIR is set, and a
# target of .cu files calls ashlar_configure_cuda_target(target).
set(ASHLAR_CUDA AUTO CACHE STRING "Build the CUDA parts: AUTO (where the toolkit is found), ON (required) or OFF")
# Device code takes nvcc minutes and a sanitizer sees none of it, so only plain builds have it. A project that takes us
# in with add_subdirectory asks for it.
set(ashlar_kernels_default OFF)
if(PROJECT_IS_TOP_LEVEL)
  set(ashlar_kernels_default AUTO)
endif()
set(ASHLAR_CUDA_KERNELS ${ashlar_kernels_default} CACHE STRING
    "Compile device code: AUTO (where nvcc and cuBLAS's headers are found), ON (required) or OFF")
set_property(CACHE ASHLAR_CUDA ASHLAR_CUDA_KERNELS PROPERTY STRINGS AUTO ON OFF)
# A program with a static runtime needs no toolkit where it runs. One with the shared runtime also runs over the hollow
# device, without a GPU.
set(ASHLAR_CUDA_RUNTIME static CACHE STRING "CUDA's runtime of tests and benches: static or shared")
set_property(CACHE ASHLAR_CUDA_RUNTIME PROPERTY STRINGS static shared)
if(NOT ASHLAR_CUDA_RUNTIME MATCHES "^(static|shared)$")
  message(FATAL_ERROR "ASHLAR_CUDA_RUNTIME=${ASHLAR_CUDA_RUNTIME} is neither static nor shared")
endif()
set(ASHLAR_CUDA_MINIMUM 12.0)

# ashlar_read_auto(OPTION): sets OPTION_value to AUTO, ON or OFF, and stops where the option is none of them.
function(ashlar_read_auto option)
  string(TOUPPER "${${option}}" value)
  if(NOT value MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${option}=${${option}} is not one of AUTO, ON, OFF")
  endif()
  set(${option}_value ${value} PARENT_SCOPE)
endfunction()

# ashlar_left_out(OPTION "part" "reason and mend"): a line at the end of the configure step, or the end of it where the
# option is ON.
function(ashlar_left_out option part reason)
  if(${option}_value STREQUAL "ON")
    message(FATAL_ERROR "${option}=ON, but ${reason}")
  endif()
  set_property(GLOBAL APPEND PROPERTY ASHLAR_LEFT_OUT "left out: ${part}: ${reason}")
endfunction()

ashlar_read_auto(ASHLAR_CUDA)
ashlar_read_auto(ASHLAR_CUDA_KERNELS)

# The CUDA device is none of them: it looks the driver up when it is opened (allocator/device/cuda_driver.h).
set(ashlar_toolkit_parts "names of blocks for compute-sanitizer (NVTX), benches and tests that call CUDA themselves")
set(ASHLAR_HAVE_CUDA OFF)
if(ASHLAR_CUDA_value STREQUAL "OFF")
  ashlar_left_out(ASHLAR_CUDA "${ashlar_toolkit_parts}" "ASHLAR_CUDA=OFF")
else()
  find_package(CUDAToolkit ${ASHLAR_CUDA_MINIMUM} QUIET)
  if(CUDAToolkit_FOUND)
    find_file(ashlar_cuda_typedefs cudaTypedefs.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE)
  endif()
  if(NOT CUDAToolkit_FOUND)
    ashlar_left_out(ASHLAR_CUDA "${ashlar_toolkit_parts}"
                    "no toolkit >= ${ASHLAR_CUDA_MINIMUM} was found: put nvcc on PATH or set CUDAToolkit_ROOT")
  elseif(NOT TARGET CUDA::cudart_static OR NOT ashlar_cuda_typedefs)
    ashlar_left_out(ASHLAR_CUDA "${ashlar_toolkit_parts}"
                    "the toolkit in ${CUDAToolkit_BIN_DIR} has no static runtime with its headers (cuda-cudart-dev)")
  else()
    set(ASHLAR_HAVE_CUDA ON)
    add_library(ashlar_cuda_runtime INTERFACE)
    if(ASHLAR_CUDA_RUNTIME STREQUAL "shared")
      target_link_libraries(ashlar_cuda_runtime INTERFACE CUDA::cudart)
      set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
    else()
      target_link_libraries(ashlar_cuda_runtime INTERFACE CUDA::cudart_static)
    endif()
    message(STATUS "CUDA: toolkit ${CUDAToolkit_VERSION} in ${CUDAToolkit_BIN_DIR}")
  endif()
endif()

set(ASHLAR_HAVE_NVTX OFF)
if(ASHLAR_HAVE_CUDA)
  foreach(folder ${CUDAToolkit_INCLUDE_DIRS})
    if(EXISTS ${folder}/nvtx3/nvToolsExtMem.h)
      set(ASHLAR_HAVE_NVTX ON)
    endif()
  endforeach()
  if(NOT ASHLAR_HAVE_NVTX)
    ashlar_left_out(ASHLAR_NVTX "names of blocks for compute-sanitizer" "the toolkit has no nvtx3/nvToolsExtMem.h")
  endif()
endif()

# Sets ASHLAR_HAVE_NVCC, or says why not.
macro(ashlar_find_device_compiler)
  if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80)  # and its PTX, which later devices compile when they load it; 70 and 75 on request
  endif()
  # A program that runs on a GPU loads cuBLAS; to be compiled it needs the headers alone.
  find_path(ASHLAR_CUBLAS_INCLUDE_DIR cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
            DOC "The folder of cublas_v2.h where the toolkit has none, such as nvidia/cu13/include of PyPI's nvidia-cublas")
  mark_as_advanced(ASHLAR_CUBLAS_INCLUDE_DIR)
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    ashlar_left_out(ASHLAR_CUDA_KERNELS "device code" "no nvcc that works was found")
  elseif(NOT ASHLAR_CUBLAS_INCLUDE_DIR)
    ashlar_left_out(ASHLAR_CUDA_KERNELS "device code" "no cublas_v2.h was found: set ASHLAR_CUBLAS_INCLUDE_DIR to its folder")
  else()
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
endmacro()

set(ASHLAR_HAVE_NVCC OFF)
if(ASHLAR_SANITIZE OR ASHLAR_FUZZ)
  ashlar_left_out(ASHLAR_SANITIZE "device code" "a sanitizer would not see it")
elseif(ASHLAR_CUDA_KERNELS_value STREQUAL "OFF")
  ashlar_left_out(ASHLAR_CUDA_KERNELS "device code" "ASHLAR_CUDA_KERNELS=OFF (the preset cuda has it)")
elseif(NOT ASHLAR_HAVE_CUDA)
  ashlar_left_out(ASHLAR_CUDA_KERNELS "device code" "it needs the CUDA toolkit")
else()
  ashlar_find_device_compiler()
endif()

# Flags of a target that has .cu files.
function(ashlar_configure_cuda_target target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;--expt-relaxed-constexpr;--extended-lambda>")
  if(ASHLAR_WERROR)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
  endif()
endfunction()

# ashlar_say_what_was_left_out(): the last lines of the configure step.
function(ashlar_say_what_was_left_out)
  get_property(lines GLOBAL PROPERTY ASHLAR_LEFT_OUT)
  foreach(line IN LISTS lines)
    message(STATUS "${line}")
  endforeach()
endfunction()
