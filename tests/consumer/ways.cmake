# The tests consumer.*: install this build into a folder, by component and as a whole; then build and run tests/consumer
# and the example of the documents against it, and the former once more with the source tree as a subproject, which
# builds the allocator alone, as a shared library.
set(consumer_dir ${PROJECT_BINARY_DIR}/consumer)
set(consumer_settings -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
                      -DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS} -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DASHLAR_CUDA=${ASHLAR_CUDA}
                      -DCONSUMER_EXAMPLE=${PROJECT_SOURCE_DIR}/docs/examples/training_oom.pickle)
if(CMAKE_UNITY_BUILD)
  list(APPEND consumer_settings -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=48)
endif()

# ashlar_consumer_test(name way "component;..." "output" [cmake arguments])
function(ashlar_consumer_test name way components output)
  string(REPLACE ";" "," components "${components}")
  add_test(NAME consumer.${name}
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR}/tests/consumer ${consumer_dir}/${name}
                   --build-generator ${CMAKE_GENERATOR} --build-noclean
                   --build-options ${consumer_settings} -DCONSUMER_WAY=${way} "-DCONSUMER_COMPONENTS=${components}" ${ARGN})
  set_tests_properties(consumer.${name} PROPERTIES LABELS consumer TIMEOUT 900 PASS_REGULAR_EXPRESSION "${output}")
endfunction()

# ashlar_install_test(name build [--component component]): installs into the folder `name`; a test that needs it has the
# fixture ashlar_name.
function(ashlar_install_test name build)
  string(JOIN " " arguments ${ARGN})
  add_test(NAME consumer.${name} COMMAND bash -c "rm -rf '${consumer_dir}/${name}_prefix' && \
           '${CMAKE_COMMAND}' --install '${build}' --prefix '${consumer_dir}/${name}_prefix' ${arguments}")
  set_tests_properties(consumer.${name} PROPERTIES LABELS consumer FIXTURES_SETUP ashlar_${name})
endfunction()

set(allocator_works "300 MiB took 300.00 MiB of the device")
set(analyzer_works "training_oom.pickle is explained")
set(exports ${CMAKE_CURRENT_LIST_DIR}/exports.py)

# Without what the allocator does not need, which must not even be looked for.
ashlar_consumer_test(add_subdirectory add_subdirectory "allocator" "${allocator_works}"
                     -DASHLAR_SOURCE=${PROJECT_SOURCE_DIR} -DBUILD_SHARED_LIBS=ON -DASHLAR_BUILD_ANALYZER=OFF -DASHLAR_INSTALL=ON
                     -DASHLAR_FETCH_DEPENDENCIES=OFF -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON
                     -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON)
set_tests_properties(consumer.add_subdirectory PROPERTIES PROCESSORS 2 FIXTURES_SETUP ashlar_subproject)
set(subproject ${consumer_dir}/add_subdirectory/ashlar)
add_test(NAME consumer.exports COMMAND ${Python3_EXECUTABLE} -B ${exports} ${subproject}/lib/libashlar_allocator.so
         ashlar::Allocator::Free ashlar::FormatBytes ashlar::Recorder::Write)
ashlar_install_test(install_shared ${subproject} --component allocator)
set_tests_properties(consumer.exports consumer.install_shared PROPERTIES FIXTURES_REQUIRED ashlar_subproject LABELS consumer)
ashlar_consumer_test(find_package_shared find_package "allocator" "${allocator_works}"
                     -DCMAKE_PREFIX_PATH=${consumer_dir}/install_shared_prefix -DCONSUMER_HEADERS=)
set_tests_properties(consumer.find_package_shared PROPERTIES FIXTURES_REQUIRED ashlar_install_shared)

# The analyzer as a shared library is one link more here, and a program runs on it.
add_executable(shared_analyzer_consumer consumer/analyzer_consumer.cc)
target_link_libraries(shared_analyzer_consumer PRIVATE ashlar_shared_analyzer)
add_test(NAME consumer.shared_analyzer COMMAND shared_analyzer_consumer ${PROJECT_SOURCE_DIR}/docs/examples/training_oom.pickle)
set_tests_properties(consumer.shared_analyzer PROPERTIES LABELS consumer PASS_REGULAR_EXPRESSION "${analyzer_works}")
add_test(NAME consumer.exports_analyzer COMMAND ${Python3_EXECUTABLE} -B ${exports} $<TARGET_FILE:ashlar_shared_analyzer>
         ashlar::ExplainFile ashlar::ExplainBytes ashlar::Tuner::Look)
set_tests_properties(consumer.exports_analyzer PROPERTIES LABELS consumer)
add_test(NAME consumer.analyzer_without_kernels
         COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/no_symbols.py ashlar::kernels
         $<TARGET_FILE:ashlar_analyzer> $<TARGET_FILE:ashlar_estimator>)
set_tests_properties(consumer.analyzer_without_kernels PROPERTIES LABELS consumer)

if(ASHLAR_INSTALL)
  ashlar_install_test(install ${PROJECT_BINARY_DIR})
  set(components allocator analyzer)
  ashlar_consumer_test(find_package find_package "${components}" "${analyzer_works}"
                       -DCMAKE_PREFIX_PATH=${consumer_dir}/install_prefix -DCONSUMER_HEADERS=)
  add_test(NAME consumer.example
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR}/docs/examples/allocate
                   ${consumer_dir}/example --build-generator ${CMAKE_GENERATOR} --build-noclean
                   --build-options ${consumer_settings} -DCMAKE_PREFIX_PATH=${consumer_dir}/install_prefix
                   --test-command ${consumer_dir}/example/allocate)
  set_tests_properties(consumer.example PROPERTIES LABELS consumer TIMEOUT 900 PASS_REGULAR_EXPRESSION
                       "200 requests took 2 device calls, 320.00 MiB\nout of memory: 4.00 TiB requested")
  set_tests_properties(consumer.find_package consumer.example PROPERTIES FIXTURES_REQUIRED ashlar_install)
  # The C interface alone: by CMake in a project of C, and by pkg-config.
  ashlar_install_test(install_c ${PROJECT_BINARY_DIR} --component c)
  set(c_prefix ${consumer_dir}/install_c_prefix)
  set(c_works "2 requests took 1 device calls, 30 MiB")
  add_test(NAME consumer.find_package_c
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR}/tests/consumer/c ${consumer_dir}/find_package_c
                   --build-generator ${CMAKE_GENERATOR} --build-noclean --build-options -DCMAKE_PREFIX_PATH=${c_prefix}
                   --test-command ${consumer_dir}/find_package_c/client)
  add_test(NAME consumer.exports_c COMMAND bash -c "nm -D --defined-only $<TARGET_FILE:ashlar_c> | awk '$3 !~ /^ashlar_/ { \
           print \"exports \" $3; bad = 1 } END { if (!bad) print NR \" names, all of ashlar.h\" }'")
  set_tests_properties(consumer.exports_c PROPERTIES LABELS consumer PASS_REGULAR_EXPRESSION "[345][0-9] names, all of ashlar.h")
  # A library that is opened late gets little thread-local memory: one word, whose place the linker knows.
  add_test(NAME consumer.thread_local_c COMMAND bash -c "readelf -lW $<TARGET_FILE:ashlar_c> | awk '$1 == \"TLS\" { print \"takes \" $6 }'")
  set_tests_properties(consumer.thread_local_c PROPERTIES LABELS consumer PASS_REGULAR_EXPRESSION "takes 0x0*8\n")
  set_tests_properties(consumer.find_package_c PROPERTIES LABELS consumer TIMEOUT 300 FIXTURES_REQUIRED ashlar_install_c
                       PASS_REGULAR_EXPRESSION "${c_works}")
  add_test(NAME consumer.find_package_cxx
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR}/tests/consumer/cxx ${consumer_dir}/find_package_cxx
                   --build-generator ${CMAKE_GENERATOR} --build-noclean
                   --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_PREFIX_PATH=${c_prefix}
                                   -DCONSUMER_CUDA=${ASHLAR_HAVE_CUDA}
                   --test-command ${consumer_dir}/find_package_cxx/handle)
  set_tests_properties(consumer.find_package_cxx PROPERTIES LABELS consumer TIMEOUT 600 FIXTURES_REQUIRED ashlar_install_c
                       PASS_REGULAR_EXPRESSION "1000 requests took 5 device calls")
  foreach(component allocator analyzer)
    ashlar_install_test(install_${component} ${PROJECT_BINARY_DIR} --component ${component})
    ashlar_consumer_test(find_package_${component} find_package ${component} "${${component}_works}"
                         -DCMAKE_PREFIX_PATH=${consumer_dir}/install_${component}_prefix)
    set_tests_properties(consumer.find_package_${component} PROPERTIES FIXTURES_REQUIRED ashlar_install_${component})
  endforeach()
  if(TARGET ashlar_adapters_nvtx)
    ashlar_consumer_test(find_package_nvtx find_package "allocator;adapters_nvtx" "${allocator_works}"
                         -DCMAKE_PREFIX_PATH=${consumer_dir}/install_prefix -DCONSUMER_HEADERS=adapters_nvtx)
    set_tests_properties(consumer.find_package_nvtx PROPERTIES FIXTURES_REQUIRED ashlar_install)
  endif()
  find_program(ASHLAR_PKG_CONFIG pkg-config)
  mark_as_advanced(ASHLAR_PKG_CONFIG)
  if(ASHLAR_PKG_CONFIG)
    add_test(NAME consumer.pkg_config_c COMMAND bash -c "PKG_CONFIG_PATH=${c_prefix}/${CMAKE_INSTALL_LIBDIR}/pkgconfig; \
export PKG_CONFIG_PATH; cc -D_POSIX_C_SOURCE=200809L '${CMAKE_CURRENT_SOURCE_DIR}/allocator/api/c/client.c' -o '${consumer_dir}/client_c' \
$('${ASHLAR_PKG_CONFIG}' --cflags --libs ashlar) -Wl,-rpath,'${c_prefix}/${CMAKE_INSTALL_LIBDIR}' && '${consumer_dir}/client_c'")
    set_tests_properties(consumer.pkg_config_c PROPERTIES LABELS consumer FIXTURES_REQUIRED ashlar_install_c
                         PASS_REGULAR_EXPRESSION "${c_works}")
    ashlar_consumer_test(pkg_config pkg_config "allocator;analyzer" "${analyzer_works}"
                         -DCMAKE_PREFIX_PATH=${consumer_dir}/install_prefix)
    set_tests_properties(consumer.pkg_config PROPERTIES FIXTURES_REQUIRED ashlar_install)
  else()
    set_property(GLOBAL APPEND PROPERTY ASHLAR_LEFT_OUT "left out: the test consumer.pkg_config: no pkg-config was found")
  endif()
endif()
