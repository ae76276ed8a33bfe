// Finds the public functions of a CUDA runtime that is linked into an object, in the object's file.
//
//   const FoundEntries* found = FindEntries(&file, &names);
//   for (size_t i = 0; i < found->count; ++i) ... found->entries[i]
//
// By the symbol table, where the object still has it. Without: each public function refers to the text of its own
// name, for tools, and the table of .eh_frame_hdr says where the function begins that refers to a text. Some have no
// such text, those that register kernels among them, so that an object with kernels of its own is not served by names.
//
// Seen with the runtimes 12.9 to 13.5: all that is found by names is where the symbol table has it.
// Thread rule: the caller holds a lock, as the dynamic linker does: what is found is kept in one place.
#ifndef ASHLAR_HOLLOW_AUDIT_ENTRIES_H_
#define ASHLAR_HOLLOW_AUDIT_ENTRIES_H_

#include "hollow/audit/elf_file.h"

enum { kMostEntries = 2048 };

typedef struct {
  const char* name;
  uint64_t address;  // as linked
  uint64_t bytes;    // at most
} Entry;

// kUnserved: there is a runtime whose functions are not found.
typedef enum { kNoRuntime, kBySymbols, kByNames, kUnserved } RuntimeKind;

typedef struct {
  RuntimeKind kind;
  int major;  // of the runtime: 11, 12 or 13
  Entry* entries;
  size_t count;
} FoundEntries;

// Which names somebody answers; a function of another name is an entry all the same where it lies among those.
typedef struct {
  int (*is_answered)(const void* context, const char* name);
  const void* context;
} AnsweredNames;

// Both ways, the symbol table first. cudaRuntimeGetVersion is left out: it asks no driver, and says what is linked.
const FoundEntries* FindEntries(const ElfFile* file, const AnsweredNames* names);

// One way alone; the number of entries, 0 where it finds no whole runtime. `major` is set where it does.
size_t EntriesBySymbols(const ElfFile* file, const AnsweredNames* names, Entry* out, int* major);
size_t EntriesByNames(const ElfFile* file, const AnsweredNames* names, Entry* out, int* major);

// Whether the text is a name that a runtime's function may have, with or without two underlines before it.
int IsRuntimeName(const char* text);

// Tells the major version of a runtime by the names that it has.
typedef struct {
  int has_second_properties, has_libraries;
} VersionSigns;
void LookForVersion(const char* name, VersionSigns* signs);
int MajorOf(const VersionSigns* signs);

#endif  // ASHLAR_HOLLOW_AUDIT_ENTRIES_H_
