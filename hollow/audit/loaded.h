// An object as the dynamic linker has mapped it, before it is relocated: its exports, its file.
//
//   LoadedFile loaded;
//   if (!OpenLoaded(map, &loaded)) return;
//   ... loaded.elf, loaded.path
//   CloseLoaded(&loaded);
//
// Thread rule: the caller holds the dynamic linker's lock, as an auditor does.
#ifndef ASHLAR_HOLLOW_AUDIT_LOADED_H_
#define ASHLAR_HOLLOW_AUDIT_LOADED_H_

#include <link.h>

#include "hollow/audit/elf_file.h"

enum { kMostPath = 4096 };

typedef struct {
  ElfFile elf;
  long file;
  char path[kMostPath];
} LoadedFile;

// 0 where the file is not to be had, or no ELF file of ours.
int OpenLoaded(const struct link_map* map, LoadedFile* out);
void CloseLoaded(LoadedFile* loaded);

// The address of a function that the object exports; 0 where it does not.
uint64_t ExportOf(const struct link_map* map, const char* name);

#endif  // ASHLAR_HOLLOW_AUDIT_LOADED_H_
