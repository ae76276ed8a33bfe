# The libraries that the build by emscripten takes beside Abseil, of sources that tools/web lays out: the platform has no
# packages, and what is installed is for another one.
set(ASHLAR_WEB_SOURCES "${PROJECT_SOURCE_DIR}/build/web-sources" CACHE PATH "Sources for the build by emscripten")

add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
target_include_directories(nlohmann_json::nlohmann_json INTERFACE ${ASHLAR_WEB_SOURCES}/include)

enable_language(C)
set(ashlar_zlib_names adler32 compress crc32 deflate infback inffast inflate inftrees trees uncompr zutil)
list(TRANSFORM ashlar_zlib_names REPLACE "(.+)" "${ASHLAR_WEB_SOURCES}/zlib/\\1.c" OUTPUT_VARIABLE ashlar_zlib_sources)
add_library(ashlar_zlib STATIC ${ashlar_zlib_sources})
target_include_directories(ashlar_zlib PUBLIC ${ASHLAR_WEB_SOURCES}/zlib)
set_target_properties(ashlar_zlib PROPERTIES UNITY_BUILD OFF)
add_library(ZLIB::ZLIB ALIAS ashlar_zlib)

# A size has 32 bits here: what does not fit into them is refused before it is read.
add_compile_options(-Wno-shorten-64-to-32 -Wno-implicit-int-conversion)
