// Ends the program when its own memory ends: one line on stderr with the input that was being read and how much it
// takes, and the exit code of an input that cannot be used. It works on any thread, also where no exception could pass.
//
//   EndWhereMemoryEnds();                            // once, at the start of the program
//   EndWhereInputEnds();                             // the same for a mapped input that gets shorter as it is read
//   GoOnWhereFilesEnd();                             // a file that may not grow (ulimit -f) is an error of its write
//   ExpectMemoryFor("snapshot.pickle", 506 * kMiB);  // before an input is read: as long as it lies there
//   ExpectMemoryFor("snapshot.pickle", bytes);       // unpacked
//
//   ashlar: snapshot.pickle: out of memory: its 506.00 MiB take about 4.45 GiB to read and replay, the limit is
//   2.86 GiB (ulimit -v): raise it, or record fewer events
//
// One thread at a time, but for the end itself.
#ifndef ASHLAR_CONSOLE_MEMORY_END_H_
#define ASHLAR_CONSOLE_MEMORY_END_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ashlar::cli {

void EndWhereMemoryEnds();
// Other bus errors end the program as they did.
void EndWhereInputEnds();
void GoOnWhereFilesEnd();
// In a new process, before it becomes another program: for that one a limit of files is what it was for this one.
void EndWhereFilesEnd();

void ExpectMemoryFor(const std::string& input, std::uint64_t stored_bytes);
void ExpectMemoryFor(const std::string& input, absl::string_view bytes);

// The input has been read, and of what it takes this share stays while others are read.
void KeepOfMemory(double share);

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_MEMORY_END_H_
