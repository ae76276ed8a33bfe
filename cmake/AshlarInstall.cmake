# Install rules: the CMake package, pkg-config files and headers, by component (docs/library/building.md).
#
#   allocator       libashlar_allocator and its headers: needs Abseil alone
#   c               libashlar.so and <ashlar.h>, the C interface: needs nothing of its users; and what C++ programs have over it
#   adapters_nvtx   NVTX ranges as scopes of recordings, where the toolkit has NVTX
#   analyzer        libashlar_analyzer, which has an allocator of its own inside, <ashlar/explain.h>, and <ashlar/tuner.h>
#                   for programs that link the allocator too: needs zlib
#   program         bin/ashlar
#   mpi             lib/ashlar/libashlar_mpi.so, where MPI is installed: what `ashlar fleet` opens under mpirun or srun
#   hollow          lib/ashlar: what `ashlar dry-run`, `record` and `run-under` preload, and <ashlar/hollow.h>; what
#                   `run-under --serve` preloads opens the library of component c
#
# `cmake --install build --component NAME` needs no more than that component built; without one, what was built is
# installed. tests/consumer holds this to its word.
include(CMakePackageConfigHelpers)

set(ASHLAR_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ashlar)

# ashlar_install_library(component): as find_package(ashlar COMPONENTS component) gives it.
function(ashlar_install_library component)
  set(target ${ashlar_kind}_${component})
  if(NOT TARGET ${target})
    set(target ashlar_${component})
  endif()
  install(TARGETS ${target} EXPORT ashlar-${component}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} OPTIONAL
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} OPTIONAL)
  install(EXPORT ashlar-${component} NAMESPACE ashlar:: DESTINATION ${ASHLAR_PACKAGE_DIR} COMPONENT ${component})
  install(FILES ${PROJECT_BINARY_DIR}/cmake/ashlarConfig.cmake ${PROJECT_BINARY_DIR}/cmake/ashlarConfigVersion.cmake
          DESTINATION ${ASHLAR_PACKAGE_DIR} COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
endfunction()

function(ashlar_install_headers component)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/include/ashlar/)
  install(FILES ${ARGN} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ashlar COMPONENT ${component})
endfunction()

# ashlar_install_pkg_config(component "packages that users compile with" "packages that we link"): a static library brings
# the latter to the link.
function(ashlar_install_pkg_config component public private)
  set(ASHLAR_PC_NAME ${component})
  file(RELATIVE_PATH ASHLAR_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(ASHLAR_PC_REQUIRES ${public})
  set(ASHLAR_PC_LIBS -lashlar_${component})
  if(NOT BUILD_SHARED_LIBS)
    string(APPEND ASHLAR_PC_REQUIRES " ${private}")
    string(APPEND ASHLAR_PC_LIBS " -Wl,--exclude-libs,libashlar_${component}.a -pthread -ldl")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/ashlar.pc.in ${PROJECT_BINARY_DIR}/cmake/ashlar-${component}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/ashlar-${component}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT ${component})
endfunction()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ashlarConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/cmake/ashlarConfig.cmake
                              INSTALL_DESTINATION ${ASHLAR_PACKAGE_DIR} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/ashlarConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)

set(ashlar_public_absl "absl_span absl_status absl_statusor absl_strings")
set(ashlar_private_absl "absl_base absl_flat_hash_map absl_function_ref absl_inlined_vector absl_str_format")
ashlar_install_library(allocator)
ashlar_install_headers(allocator allocator.h ashlar.h buffer.h device.h devices.h errors.h events.h exceptions.h export.h
                       options.h pool.h pool_routes.h recorder.h scope.h sleep.h snapshot.h soft_limit.h statistics.h units.h)
ashlar_install_pkg_config(allocator "${ashlar_public_absl}" "${ashlar_private_absl}")
# The C interface: a library that takes nothing of C++ from its users.
install(TARGETS ashlar_c EXPORT ashlar-c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c OPTIONAL)
install(EXPORT ashlar-c NAMESPACE ashlar:: DESTINATION ${ASHLAR_PACKAGE_DIR} COMPONENT c)
install(FILES ${PROJECT_BINARY_DIR}/cmake/ashlarConfig.cmake ${PROJECT_BINARY_DIR}/cmake/ashlarConfigVersion.cmake
        DESTINATION ${ASHLAR_PACKAGE_DIR} COMPONENT c)
install(FILES ${PROJECT_SOURCE_DIR}/include/ashlar.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT c)
ashlar_install_headers(c cub.h cuda_mr.h cuda_stream.h exceptions.h export.h handle.h onnxruntime.h pmr.h rmm.h thrust_mr.h)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT c)
file(RELATIVE_PATH ASHLAR_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/ashlar_c.pc.in ${PROJECT_BINARY_DIR}/cmake/ashlar.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cmake/ashlar.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT c)
# PyTorch's plug-in and CuPy's functions lie beside it, for python/ashlar_gpu.
install(TARGETS ashlar_torch ashlar_cupy LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c OPTIONAL)
install(DIRECTORY ${PROJECT_BINARY_DIR}/lib/ashlar/torch_native DESTINATION lib/ashlar COMPONENT c)
if(TARGET ashlar_adapters_nvtx)
  ashlar_install_library(adapters_nvtx)
  ashlar_install_headers(adapters_nvtx nvtx.h)
endif()
# The program looks for it in ../lib/ashlar, wherever both lie.
set(ashlar_hollow_dir lib/ashlar)
install(TARGETS ashlar_hollow ashlar_record ashlar_serve LIBRARY DESTINATION ${ashlar_hollow_dir} COMPONENT hollow OPTIONAL)
if(TARGET ashlar_audit)
  install(TARGETS ashlar_audit LIBRARY DESTINATION ${ashlar_hollow_dir} COMPONENT hollow OPTIONAL)
endif()
install(TARGETS ashlar_hollow_shim_cuda ashlar_hollow_shim_nvidia-ml
        LIBRARY DESTINATION ${ashlar_hollow_dir}/shims COMPONENT hollow OPTIONAL NAMELINK_SKIP)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/hollow/python DESTINATION ${ashlar_hollow_dir} COMPONENT hollow
        PATTERN __pycache__ EXCLUDE)
ashlar_install_headers(hollow hollow.h export.h)
if(ASHLAR_BUILD_ANALYZER)
  ashlar_install_library(analyzer)
  ashlar_install_headers(analyzer explain.h export.h tuner.h)
  ashlar_install_pkg_config(analyzer "${ashlar_public_absl}" "${ashlar_private_absl} zlib")
  install(TARGETS ashlar_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program OPTIONAL)
  if(TARGET ashlar_mpi)
    install(TARGETS ashlar_mpi LIBRARY DESTINATION ${ashlar_hollow_dir} COMPONENT mpi OPTIONAL)
  endif()
endif()
