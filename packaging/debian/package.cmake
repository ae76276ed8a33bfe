# Read by cpack: what the one Debian package holds that ASHLAR_DEBIAN_PACKAGE names. The components are those of
# `cmake --install`; arrange.cmake takes out what another of the packages has.
set(package "$ENV{ASHLAR_DEBIAN_PACKAGE}")
set(CPACK_PACKAGE_NAME ${package})
set(CPACK_PACKAGE_FILE_NAME ${package})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(same "(= ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(why_memory "Ashlar replays a recorded run through a caching allocator that decides
as PyTorch's does. It says why memory ran out, where every byte was, and
which setting would have helped.")

if(package STREQUAL "ashlar")
  set(components program hollow)
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "explains GPU memory, and runs CUDA programs without a GPU")
  set(CPACK_PACKAGE_DESCRIPTION "${why_memory}
.
This package has the program ashlar, with the libraries by which it runs
a CUDA program, unchanged, without a GPU.")
  set(CPACK_DEBIAN_PACKAGE_SECTION devel)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CPACK_ASHLAR_BUILD}/hollow)
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, libashlar1, libsqlite3-0")
  set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CPACK_ASHLAR_SOURCE}/packaging/debian/prerm)
elseif(package STREQUAL "libashlar1")
  set(components c)
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "caching allocator of GPU memory")
  set(CPACK_PACKAGE_DESCRIPTION "${why_memory}
.
This package has the allocator itself, as a library for programs.")
  set(CPACK_DEBIAN_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CPACK_ASHLAR_SOURCE}/packaging/debian/triggers
      ${CPACK_ASHLAR_SOURCE}/packaging/debian/shlibs)
elseif(package STREQUAL "libashlar-dev")
  set(components c allocator analyzer hollow)
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "caching allocator of GPU memory, to build programs with")
  set(CPACK_PACKAGE_DESCRIPTION "${why_memory}
.
This package has the headers, the static C++ libraries, and what CMake and
pkg-config need to find them.")
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libashlar1 ${same}, libabsl-dev, zlib1g-dev")
else()
  message(FATAL_ERROR "ASHLAR_DEBIAN_PACKAGE=${package} is not one of ashlar, libashlar1, libashlar-dev: run tools/deb")
endif()

set(CPACK_INSTALL_CMAKE_PROJECTS "")
foreach(component ${components})
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS "${CPACK_ASHLAR_BUILD};ashlar;${component};/")
endforeach()
