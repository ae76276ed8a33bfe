// Whose memory of a device is: by the file of the code that asked for it.
//
//   OwnerOf("/usr/lib/libnccl.so.2")   // "NCCL"
//   OwnerOf("/home/me/simulate")       // "the program (simulate)"
#ifndef ASHLAR_ANALYZER_LIBRARIES_OWNERS_H_
#define ASHLAR_ANALYZER_LIBRARIES_OWNERS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ashlar::libraries {

// The library's name; its file's, where it is none that is known by name; "unknown" for no file.
std::string OwnerOf(absl::string_view file);
// With the file's name, where the owner's does not say it: "NCCL (libnccl.so.2)".
std::string OwnerAndFile(absl::string_view file);

}  // namespace ashlar::libraries

#endif  // ASHLAR_ANALYZER_LIBRARIES_OWNERS_H_
