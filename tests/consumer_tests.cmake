# The tests consumer.*: install this build into a folder, then build and run tests/consumer and the example of the
# documents against it, and the former once more with the source tree as a subproject.
set(consumer_dir ${PROJECT_BINARY_DIR}/consumer)
set(consumer_settings -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
                      -DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS} -DASHLAR_CUDA=${ASHLAR_CUDA})
if(CMAKE_UNITY_BUILD)
  list(APPEND consumer_settings -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=48)
endif()

function(ashlar_consumer_test way)
  add_test(NAME consumer.${way}
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR}/tests/consumer ${consumer_dir}/${way}
                   --build-generator ${CMAKE_GENERATOR} --build-noclean
                   --build-options ${consumer_settings} -DCONSUMER_WAY=${way} ${ARGN}
                   --test-command ${consumer_dir}/${way}/consumer)
  set_tests_properties(consumer.${way} PROPERTIES LABELS consumer TIMEOUT 900 PASS_REGULAR_EXPRESSION
                       "300 MiB took 300.00 MiB of the device")
endfunction()

ashlar_consumer_test(add_subdirectory -DASHLAR_SOURCE=${PROJECT_SOURCE_DIR} -DASHLAR_SANITIZE=${ASHLAR_SANITIZE})
set_tests_properties(consumer.add_subdirectory PROPERTIES PROCESSORS 2)
if(ASHLAR_INSTALL)
  add_test(NAME consumer.install COMMAND bash -c "rm -rf '${consumer_dir}/prefix' && \
           '${CMAKE_COMMAND}' --install '${PROJECT_BINARY_DIR}' --prefix '${consumer_dir}/prefix'")
  ashlar_consumer_test(find_package -DCMAKE_PREFIX_PATH=${consumer_dir}/prefix)
  set_tests_properties(consumer.install PROPERTIES LABELS consumer FIXTURES_SETUP ashlar_installed)
  add_test(NAME consumer.example
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR}/docs/examples/allocate
                   ${consumer_dir}/example --build-generator ${CMAKE_GENERATOR} --build-noclean
                   --build-options ${consumer_settings} -DCMAKE_PREFIX_PATH=${consumer_dir}/prefix
                   --test-command ${consumer_dir}/example/allocate)
  set_tests_properties(consumer.example PROPERTIES LABELS consumer TIMEOUT 900 PASS_REGULAR_EXPRESSION
                       "200 requests took 2 device calls, 320.00 MiB\nout of memory: 4.00 TiB requested")
  set_tests_properties(consumer.find_package consumer.example PROPERTIES FIXTURES_REQUIRED ashlar_installed)
endif()
