#include "commands/explain/page/page_template.h"

#include <cstddef>

// The assembler takes the file as it is: no generator, and no Node, is needed to build the program.
asm(R"(
    .section .rodata
    .global ashlar_page_template
    .hidden ashlar_page_template
ashlar_page_template:
    .incbin ")" ASHLAR_PAGE_TEMPLATE R"("
    .global ashlar_page_template_end
    .hidden ashlar_page_template_end
ashlar_page_template_end:
    .byte 0
    .text
)");

extern "C" const char ashlar_page_template[];
extern "C" const char ashlar_page_template_end[];

namespace ashlar::cli {

absl::string_view PageTemplate() {
  return {ashlar_page_template, static_cast<std::size_t>(ashlar_page_template_end - ashlar_page_template)};
}

}  // namespace ashlar::cli
