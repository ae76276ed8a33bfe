# Options and flags of the whole tree.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(ASHLAR_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_FUZZ "Build the fuzz targets (clang)" OFF)
option(ASHLAR_WERROR "Warnings are errors" ${PROJECT_IS_TOP_LEVEL})
set(ASHLAR_SANITIZE "" CACHE STRING "Sanitizers for every target, such as address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Sets warnings and sanitizers on one of our targets.
function(ashlar_configure_target target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                         $<$<BOOL:${ASHLAR_WERROR}>:-Werror>)
  if(ASHLAR_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ASHLAR_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${ASHLAR_SANITIZE})
  endif()
endfunction()
