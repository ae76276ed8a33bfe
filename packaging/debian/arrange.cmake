# Run by cpack on the folder of one Debian package: each file is in one package, and documents lie where Debian wants them.
set(package ${CPACK_PACKAGE_NAME})
set(usr ${CPACK_TEMPORARY_DIRECTORY}/usr)
set(libraries ${usr}/lib)

if(package STREQUAL "ashlar")
  file(REMOVE_RECURSE ${usr}/include)
  file(RENAME ${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)
elseif(package STREQUAL "libashlar1")
  file(REMOVE_RECURSE ${usr}/include ${libraries}/cmake ${libraries}/pkgconfig ${libraries}/libashlar.so)
  file(GLOB plugins ${libraries}/libashlar_*.so)  # are opened by their path, and are no libraries to link
  file(MAKE_DIRECTORY ${libraries}/ashlar)
  foreach(plugin ${plugins})
    get_filename_component(name ${plugin} NAME)
    file(RENAME ${plugin} ${libraries}/ashlar/${name})
  endforeach()
else()
  file(GLOB of_libashlar1 ${libraries}/libashlar.so.* ${libraries}/libashlar_*.so)
  file(REMOVE_RECURSE ${libraries}/ashlar ${of_libashlar1})
endif()

file(REMOVE_RECURSE ${usr}/share/doc)
set(documents ${usr}/share/doc/${package})
file(MAKE_DIRECTORY ${documents})
configure_file(${CPACK_ASHLAR_COPYRIGHT} ${documents}/copyright COPYONLY)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${documents}/changelog.Debian "ashlar (${CPACK_PACKAGE_VERSION}-1) unstable; urgency=medium

  * The packages that the project builds itself.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
file(GLOB pages ${usr}/share/man/man1/*)
execute_process(COMMAND gzip -9n ${documents}/changelog.Debian ${pages} COMMAND_ERROR_IS_FATAL ANY)
