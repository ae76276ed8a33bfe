# The libraries we build on: the installed package first, else a pinned copy by FetchContent (see docs/library/building.md; the
# versions are those of Debian 12, so that both ways build the same thing).
include(FetchContent)

set(ASHLAR_FETCHED "")

# ashlar_dependency(PACKAGE DEBIAN_PACKAGE [GIT_REPOSITORY GIT_TAG]): afterwards the targets of PACKAGE exist.
macro(ashlar_dependency package debian)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    if(NOT ASHLAR_FETCH_DEPENDENCIES OR ${ARGC} LESS 4)
      message(FATAL_ERROR "${package} is not installed: on Debian and Ubuntu, apt-get install ${debian}")
    endif()
    message(STATUS "${package} is not installed (Debian and Ubuntu: apt-get install ${debian}); "
                   "fetching ${ARGV3} from ${ARGV2}")
    string(TOLOWER ${package} ashlar_fetch_name)
    FetchContent_Declare(${ashlar_fetch_name} GIT_REPOSITORY ${ARGV2} GIT_TAG ${ARGV3} GIT_SHALLOW ON)
    FetchContent_MakeAvailable(${ashlar_fetch_name})
    list(APPEND ASHLAR_FETCHED ${package})
  endif()
endmacro()

# How a fetched copy builds: quietly, without its own tests, installed beside us where our own libraries need it.
set(ABSL_PROPAGATE_CXX_STD ON)
set(ABSL_ENABLE_INSTALL ${ASHLAR_INSTALL})
set(INSTALL_GTEST OFF)
set(BENCHMARK_ENABLE_TESTING OFF)
set(BENCHMARK_ENABLE_INSTALL OFF)
set(JSON_BuildTests OFF)
set(JSON_Install OFF)
set(CLI11_BUILD_TESTS OFF)
set(CLI11_BUILD_EXAMPLES OFF)

# An Abseil that shared libraries can hold: Debian's static one is not position independent.
set(ASHLAR_ABSEIL_SOURCE "" CACHE PATH "Abseil's source folder, to be built and linked in; empty: the installed one")
if(ASHLAR_ABSEIL_SOURCE)
  set(ashlar_units ${CMAKE_UNITY_BUILD})
  set(CMAKE_UNITY_BUILD OFF)
  add_subdirectory(${ASHLAR_ABSEIL_SOURCE} ${PROJECT_BINARY_DIR}/abseil EXCLUDE_FROM_ALL)
  set(CMAKE_UNITY_BUILD ${ashlar_units})
  list(APPEND ASHLAR_FETCHED Abseil)
else()
  ashlar_dependency(absl libabsl-dev https://github.com/abseil/abseil-cpp.git 20220623.1)
endif()
if(EMSCRIPTEN)
  include(AshlarWeb)
elseif(ASHLAR_BUILD_ANALYZER)
  ashlar_dependency(nlohmann_json nlohmann-json3-dev https://github.com/nlohmann/json.git v3.11.2)
  ashlar_dependency(CLI11 libcli11-dev https://github.com/CLIUtils/CLI11.git v2.1.2)
  ashlar_dependency(ZLIB zlib1g-dev)
endif()
find_package(Threads REQUIRED)
# What our libraries take of Abseil.
set(ashlar_absl absl::base absl::flat_hash_map absl::function_ref absl::inlined_vector absl::span absl::status absl::statusor
    absl::str_format absl::strings)
if(ASHLAR_BUILD_TESTS)
  ashlar_dependency(GTest "libgtest-dev libgmock-dev" https://github.com/google/googletest.git release-1.12.1)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
if(ASHLAR_BUILD_BENCH)
  ashlar_dependency(benchmark libbenchmark-dev https://github.com/google/benchmark.git v1.7.1)
endif()

if(ASHLAR_FETCHED AND ASHLAR_WERROR)
  # A fetched copy's headers are not system headers, so our warnings see them.
  message(STATUS "Warnings are not errors in this build: fetched ${ASHLAR_FETCHED}")
  set(ASHLAR_WERROR OFF)
endif()
