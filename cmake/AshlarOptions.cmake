# Options and flags of the whole tree; docs/library/building.md explains each option.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)  # include/ashlar/export.h marks what is exported
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(ASHLAR_BUILD_ANALYZER "Build the analyzer and the program; without them, the allocator alone" ON)
option(ASHLAR_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(BUILD_SHARED_LIBS "Libraries that others link are shared" OFF)
set(ashlar_kind ashlar_static)
if(BUILD_SHARED_LIBS)
  set(ashlar_kind ashlar_shared)
endif()
option(ASHLAR_INSTALL "Add the install rules" ${PROJECT_IS_TOP_LEVEL})
if(NOT ASHLAR_BUILD_ANALYZER)
  set(ASHLAR_BUILD_TESTS OFF)
  set(ASHLAR_BUILD_BENCH OFF)
  set_property(GLOBAL APPEND PROPERTY ASHLAR_LEFT_OUT
               "left out: analyzer, program, tests and benchmarks: ASHLAR_BUILD_ANALYZER=OFF")
endif()
option(ASHLAR_FUZZ "Build the fuzz targets with libFuzzer (clang only)" OFF)
option(ASHLAR_WERROR "Warnings are errors" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_FETCH_DEPENDENCIES "Fetch a pinned copy of a library that is not installed" ON)
# A compiler cache keys on the exact bytes of what is included, and a precompiled header is never the same twice.
set(ashlar_precompile_default ON)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(ashlar_precompile_default OFF)
endif()
option(ASHLAR_PRECOMPILE_HEADERS "Precompile the headers of the libraries we build on" ${ashlar_precompile_default})
set(ASHLAR_SANITIZE "" CACHE STRING "Sanitizers for every target, such as address,undefined or thread")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

if(NOT PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  message(NOTICE "Ashlar: CMAKE_BUILD_TYPE is not set, so its libraries are built without optimisation: set Release")
endif()

if(ASHLAR_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "ASHLAR_FUZZ=ON needs clang (libFuzzer), the compiler is ${CMAKE_CXX_COMPILER_ID}: "
                      "use `cmake --preset fuzz`, or set CMAKE_CXX_COMPILER=clang++")
endif()

# The same input has the same output on every processor. Others than plain x86-64 multiply and add in one step, which rounds once
# where two steps round twice, and most have a char without a sign: bytes of text would compare otherwise.
set(ashlar_as_x86_64 "")
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(ashlar_as_x86_64 $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CXX>:-fsigned-char>)
endif()

# Sets warnings and sanitizers on one of our targets; nvcc has flags of its own (AshlarCuda.cmake).
function(ashlar_configure_target target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)  # users see the latter alone
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion>"
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${ASHLAR_WERROR}>>:-Werror>)
  # Files have the names that they have in the tree, so that a build says nothing of the folder it was made in.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>)
  target_compile_options(${target} PRIVATE ${ashlar_as_x86_64})
  if(CMAKE_SIZEOF_VOID_P EQUAL 4)
    # What lies in memory there has fewer than 2^32 bytes, so sizes and places of it fit.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shorten-64-to-32>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 warns falsely inside std::string's own code at -O2 (GCC bug 105651).
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With -fPIC, gcc inlines no function that another library could replace, unless told so; clang always does.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
    # It looks for garbage in its own memory from 1 GiB on, not from 128 MiB: a tenth less time for a unit.
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=1048576>")
  endif()
  if(ASHLAR_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(ASHLAR_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ASHLAR_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${ASHLAR_SANITIZE})
  endif()
endfunction()

# ashlar_add_library(component OBJECTS target ... EXPORTS "pattern" ... LIBRARIES target ...): the library ashlar::component
# that others link, static or shared, of the objects of our own static ones, which take LIBRARIES. A shared one exports
# what ASHLAR_EXPORT marks and a pattern matches, and no template of another library that it instantiated.
function(ashlar_add_library component)
  cmake_parse_arguments(arg "" "" "OBJECTS;EXPORTS;LIBRARIES" ${ARGN})
  string(JOIN "; " exports ${arg_EXPORTS})
  list(TRANSFORM arg_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  set(map ${PROJECT_BINARY_DIR}/cmake/${component}.map)
  file(WRITE ${map} "{ global: extern \"C++\" { ${exports}; typeinfo?for?ashlar::*; typeinfo?name?for?ashlar::*; \
vtable?for?ashlar::*; }; local: *; };\n")
  foreach(kind STATIC SHARED)
    string(TOLOWER ashlar_${kind}_${component} target)
    add_library(${target} ${kind} EXCLUDE_FROM_ALL ${arg_OBJECTS})
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_link_libraries(${target} PUBLIC absl::span absl::status absl::statusor absl::strings
                          PRIVATE ${arg_LIBRARIES} Threads::Threads ${CMAKE_DL_LIBS})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ashlar_${component} EXPORT_NAME ${component}
                          LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                          SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                          ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
                          LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
    ashlar_configure_target(${target})
  endforeach()
  # A shared library that takes the static one exports nothing of it: two of them may have two versions inside.
  target_link_options(ashlar_static_${component} INTERFACE -Wl,--exclude-libs,libashlar_${component}.a)
  target_link_options(ashlar_shared_${component} PRIVATE -Wl,--version-script=${map} -Wl,-z,defs)
  set_target_properties(${ashlar_kind}_${component} PROPERTIES EXCLUDE_FROM_ALL OFF)
  add_library(ashlar::${component} ALIAS ${ashlar_kind}_${component})
endfunction()

# For what programs load that know nothing of it: it gives them C functions, and no template of C++'s library, which they may
# have under the same name.
set(ashlar_c_names_map ${PROJECT_BINARY_DIR}/cmake/c_names.map)
file(WRITE ${ashlar_c_names_map} "{ local: _Z*; };\n")

# For code whose speed nobody waits for: compiles in two thirds of the time.
function(ashlar_compile_quickly target)
  if(ASHLAR_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  else()
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  endif()
endfunction()

# What most of our sources include: parsing it again in each is a third of the build.
set(ashlar_common_headers <algorithm> <cstdint> <map> <optional> <string> <utility> <vector> <absl/status/statusor.h>
    <absl/strings/match.h> <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/types/span.h>
    <absl/container/flat_hash_map.h>)

# GCC 12 forgets that precompiled code came from system headers, and warns falsely inside std::string's own.
function(ashlar_allow_precompiled target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

# Precompiles these headers, and those named besides, for one of our targets. Libraries share what the allocator, the
# first of them, precompiled.
function(ashlar_precompile target)
  if(ASHLAR_PRECOMPILE_HEADERS)
    if(NOT ARGN AND TARGET ashlar_allocator AND NOT target STREQUAL "ashlar_allocator")
      target_precompile_headers(${target} REUSE_FROM ashlar_allocator)
    else()
      target_precompile_headers(${target} PRIVATE ${ashlar_common_headers} ${ARGN})
    endif()
    ashlar_allow_precompiled(${target})
  endif()
endfunction()
