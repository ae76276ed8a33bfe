# The guide with what else messages name, and the schemas that are not made of fields, as a source of the program: the assembler takes each file as it is.
#
#   ashlar_documents(OUT)   # OUT: the generated source
function(ashlar_documents out)
  set(asm "")
  set(names "")
  set(number 0)
  set(files "")
  foreach(kind Guide CausePages KeptSchemas)
    if(kind STREQUAL Guide)
      file(GLOB paths CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/guide/*.md)
      list(APPEND paths ${PROJECT_SOURCE_DIR}/docs/library/recorder.md ${PROJECT_SOURCE_DIR}/docs/library/settings.md
                        ${PROJECT_SOURCE_DIR}/docs/library/tuner.md ${PROJECT_SOURCE_DIR}/docs/internals/policy.md)
    elseif(kind STREQUAL CausePages)
      file(GLOB paths CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/guide/causes/*.md)
    else()
      set(paths "")
      foreach(name names)
        list(APPEND paths ${PROJECT_SOURCE_DIR}/docs/schemas/${name}.schema.json)
      endforeach()
    endif()
    list(SORT paths)
    list(APPEND files ${paths})
    set(rows "")
    foreach(path ${paths})
      get_filename_component(name ${path} NAME_WE)
      set(symbol ashlar_document_${number})
      string(APPEND asm "    .hidden ${symbol}, ${symbol}_end\n    .global ${symbol}, ${symbol}_end\n"
                        "${symbol}:\n    .incbin \"${path}\"\n${symbol}_end:\n    .byte 0\n")
      string(APPEND names "extern \"C\" const char ${symbol}[], ${symbol}_end[];\n")
      string(APPEND rows "      {\"${name}\", {${symbol}, static_cast<std::size_t>(${symbol}_end - ${symbol})}},\n")
      math(EXPR number "${number} + 1")
    endforeach()
    string(APPEND tables "absl::Span<const KeptDocument> ${kind}() {\n  static const KeptDocument kAll[] = {\n${rows}  };\n"
                         "  return kAll;\n}\n")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/generated/documents_data.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"#include <cstddef>

#include \"commands/documents/documents.h\"

asm(R\"(
    .section .rodata
@asm@    .text
)\");

@names@
namespace ashlar::cli {

@tables@
}  // namespace ashlar::cli
")
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}" SKIP_UNITY_BUILD_INCLUSION ON)
  set(${out} ${source} PARENT_SCOPE)
endfunction()
