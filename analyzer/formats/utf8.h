// Text from files is untrusted bytes; what we keep is valid UTF-8, so that every reporter can print it.
#ifndef ASHLAR_ANALYZER_FORMATS_UTF8_H_
#define ASHLAR_ANALYZER_FORMATS_UTF8_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace ashlar::formats {

bool IsUtf8(absl::string_view text);

// Each byte that is not part of a valid sequence becomes '?'.
std::string ToUtf8(absl::string_view text);

// ToUtf8, and each control character (C0 with line ends and ESC, DEL, C1), which a terminal may obey, becomes '?'.
std::string ToPrintable(absl::string_view text);

bool HasByteOrderMark(absl::string_view bytes);

// Text with a byte order mark, as some editors and shells write it: UTF-16 of either order turned into UTF-8, the mark
// of UTF-8 taken away. nullopt where there is no mark.
std::optional<std::string> WithoutByteOrderMark(absl::string_view bytes);

// For messages: escaped, and shortened to about 60 characters.
std::string Quoted(absl::string_view text);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_UTF8_H_
