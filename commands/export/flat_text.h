// Pieces of text in the formats that go out: numbers, JSON strings, fields of CSV, frames of a stack.
//
//   AppendJsonText("say \"hi\"", line);   "say \"hi\""  with its quotes
//   AppendCsvText("a,b", line);           "a,b"         quoted where it must be (RFC 4180)
//   AppendCsvText("=1+2", line);          '=1+2         so that a spreadsheet takes it for text; a number stays one
//
// Text that a file names may be any bytes; what comes out is UTF-8. Control characters are escaped in JSON, and '?' in
// CSV, where line ends stay: a cell with one is quoted. Pure functions.
#ifndef ASHLAR_COMMANDS_EXPORT_FLAT_TEXT_H_
#define ASHLAR_COMMANDS_EXPORT_FLAT_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "allocator/trace/stack_table.h"

namespace ashlar::exports {

void AppendJsonText(absl::string_view text, std::string& out);
void AppendCsvText(absl::string_view text, std::string& out);

// "forward (model.py:211)"; of a scope or a frame without a file its function alone.
std::string FrameText(const trace::Frame& frame);

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_FLAT_TEXT_H_
