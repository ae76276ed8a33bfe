# What packages have besides libraries and headers: the notices of what is linked in, the man page and the shells' completions;
# and Debian packages by CPack (docs/library/packages.md). tools/wheel and tools/deb make the packages.
#
# A wheel (scikit-build-core defines SKBUILD) has these at places of its own: the component `wheel`.
set(ASHLAR_ABSEIL_VERSION ${absl_VERSION})
if(ASHLAR_ABSEIL_SOURCE)
  get_directory_property(ASHLAR_ABSEIL_VERSION DIRECTORY ${ASHLAR_ABSEIL_SOURCE} DEFINITION PROJECT_VERSION)
endif()
set(ashlar_generated ${PROJECT_BINARY_DIR}/generated)
configure_file(${PROJECT_SOURCE_DIR}/packaging/copyright.in ${ashlar_generated}/copyright @ONLY)

# ashlar_install_pages(share component ...): what `ashlar --generate` made, below the folder `share`.
function(ashlar_install_pages share)
  install(FILES ${ashlar_generated}/man DESTINATION ${share}/man/man1 RENAME ashlar.1 OPTIONAL ${ARGN})
  install(FILES ${ashlar_generated}/bash DESTINATION ${share}/bash-completion/completions RENAME ashlar OPTIONAL ${ARGN})
  install(FILES ${ashlar_generated}/zsh DESTINATION ${share}/zsh/site-functions RENAME _ashlar OPTIONAL ${ARGN})
  install(FILES ${ashlar_generated}/fish DESTINATION ${share}/fish/vendor_completions.d RENAME ashlar.fish OPTIONAL ${ARGN})
endfunction()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${ashlar_generated}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT program)
if(ASHLAR_BUILD_ANALYZER)
  ashlar_install_pages(${CMAKE_INSTALL_DATAROOTDIR} COMPONENT program)
endif()
if(SKBUILD)
  ashlar_install_pages(${SKBUILD_DATA_DIR}/share COMPONENT wheel)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT wheel)
  install(FILES ${ashlar_generated}/copyright DESTINATION ${SKBUILD_METADATA_DIR}/licenses RENAME THIRD_PARTY_NOTICES
          COMPONENT wheel)
  # The analyzer's page, where tools/web has made it: `ashlar page`.
  install(FILES ${PROJECT_SOURCE_DIR}/dist/ashlar.html DESTINATION lib/ashlar COMPONENT wheel OPTIONAL)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR Ashlar)
set(CPACK_PACKAGE_CONTACT "The Ashlar authors <authors@ashlar.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/debian)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/debian/arrange.cmake)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packaging/debian/package.cmake)
set(CPACK_ASHLAR_COPYRIGHT ${ashlar_generated}/copyright)
set(CPACK_ASHLAR_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_ASHLAR_BUILD ${PROJECT_BINARY_DIR})
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
