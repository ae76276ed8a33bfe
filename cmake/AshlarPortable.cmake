# What loads on other machines than the one that builds it (docs/library/packages.md): with ASHLAR_GLIBC every link is against
# the names of that glibc, and what is no part of it is linked in, C++'s standard library with it.
#
# A target that passes C++ values or exceptions to the program that loads it shares C++'s library with it, and sets
# ASHLAR_SHARED_LIBSTDCXX: then it takes the one of the system, and no name of that is younger than the compiler's headers ask.
set(ASHLAR_GLIBC "" CACHE STRING "The oldest glibc that may load what is built, such as 2.28; empty: this machine's")

if(ASHLAR_GLIBC)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  # The folder is named after what makes it, so that a change links everything anew.
  file(GLOB ashlar_glibc_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/glibc/*)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ashlar_glibc_sources})
  set(ashlar_glibc_text "")
  foreach(source ${ashlar_glibc_sources})
    file(SHA256 ${source} hash)
    string(APPEND ashlar_glibc_text ${hash})
  endforeach()
  string(SHA256 hash "${ashlar_glibc_text}")
  string(SUBSTRING ${hash} 0 8 hash)
  set(ashlar_glibc_dir ${PROJECT_BINARY_DIR}/glibc-${ASHLAR_GLIBC}-${hash})
  set(ashlar_glibc_script ${PROJECT_SOURCE_DIR}/packaging/glibc/stubs.py)
  execute_process(COMMAND ${Python3_EXECUTABLE} -B ${ashlar_glibc_script} --glibc ${ASHLAR_GLIBC} --cxx ${CMAKE_CXX_COMPILER}
                          --out ${ashlar_glibc_dir}
                  OUTPUT_VARIABLE ashlar_glibc_names OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "Links against glibc ${ASHLAR_GLIBC}: ${ashlar_glibc_names}")
  set(ashlar_own_libstdcxx $<NOT:$<BOOL:$<TARGET_PROPERTY:ASHLAR_SHARED_LIBSTDCXX>>>)
  add_link_options(-L${ashlar_glibc_dir} -Wl,--exclude-libs,ALL "$<${ashlar_own_libstdcxx}:-static-libstdc++;-static-libgcc>")
  set(ZLIB_USE_STATIC_LIBS ON)
endif()
