# Install rules and the CMake package: find_package(ashlar) gives ashlar::allocator, ashlar::kernels and ashlar::analyzer,
# with ashlar::adapters_nvtx where there is NVTX.
# tests/consumer holds this to its word.
include(CMakePackageConfigHelpers)

set(ASHLAR_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ashlar)

install(TARGETS ashlar_allocator ashlar_kernels ashlar_analyzer EXPORT ashlarTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET ashlar_adapters_nvtx)
  install(TARGETS ashlar_adapters_nvtx EXPORT ashlarTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET ashlar_program)
  install(TARGETS ashlar_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
foreach(folder allocator kernels analyzer)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${ASHLAR_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h")
endforeach()

install(EXPORT ashlarTargets NAMESPACE ashlar:: DESTINATION ${ASHLAR_PACKAGE_DIR})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ashlarConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/cmake/ashlarConfig.cmake
                              INSTALL_DESTINATION ${ASHLAR_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/ashlarConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/ashlarConfig.cmake ${PROJECT_BINARY_DIR}/cmake/ashlarConfigVersion.cmake
        DESTINATION ${ASHLAR_PACKAGE_DIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
