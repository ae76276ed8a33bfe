// The bytes of an ELF file of 64 bits, its sections and the addresses that they are linked for.
//
//   ElfFile file;
//   ElfSection text;
//   if (ReadElfFile(bytes, size, &file) && FindSection(&file, ".text", &text)) ... text.bytes[i] is at text.address + i
//
// What a broken file says that lies outside of it is not there. Layout: elf(5), <elf.h>. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_AUDIT_ELF_FILE_H_
#define ASHLAR_HOLLOW_AUDIT_ELF_FILE_H_

#include <elf.h>

#include "hollow/audit/system.h"

typedef struct {
  const Byte* bytes;
  uint64_t size;
  const Elf64_Ehdr* header;
} ElfFile;

typedef struct {
  const Byte* bytes;
  uint64_t size;
  uint64_t address;
  uint32_t link;  // the section that it speaks of
} ElfSection;

// 0 where these are not such bytes, or those of another processor.
int ReadElfFile(const Byte* bytes, uint64_t size, ElfFile* out);

// One that has bytes in the file; 0 where there is none.
int SectionAt(const ElfFile* file, uint32_t index, ElfSection* out);
int FindSection(const ElfFile* file, const char* name, ElfSection* out);

// Null where the text does not end in the section.
const char* TextIn(const ElfSection* section, uint64_t at);

// The bytes that a linked address has in the file; null where `size` of them are not there.
const Byte* BytesAt(const ElfFile* file, uint64_t address, uint64_t size);

#endif  // ASHLAR_HOLLOW_AUDIT_ELF_FILE_H_
