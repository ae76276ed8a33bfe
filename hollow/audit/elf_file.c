#include "hollow/audit/elf_file.h"

#include "hollow/audit/code.h"

static int IsInside(uint64_t at, uint64_t bytes, uint64_t size) { return at <= size && bytes <= size - at; }

int ReadElfFile(const Byte* bytes, uint64_t size, ElfFile* out) {
  if (size < sizeof(Elf64_Ehdr) || !IsSameBytes(bytes, ELFMAG, SELFMAG)) return 0;
  out->bytes = bytes;
  out->size = size;
  out->header = (const Elf64_Ehdr*)bytes;
  const Elf64_Ehdr* header = out->header;
  if (bytes[EI_CLASS] != ELFCLASS64 || header->e_machine != kMachine) return 0;
  const int has_sections = header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shoff % sizeof(uint64_t) == 0 &&
                           IsInside(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), size);
  const int has_segments = header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phoff % sizeof(uint64_t) == 0 &&
                           IsInside(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr), size);
  return has_sections && has_segments;
}

static const Elf64_Shdr* SectionHeader(const ElfFile* file, uint32_t index) {
  return index < file->header->e_shnum ? (const Elf64_Shdr*)(file->bytes + file->header->e_shoff) + index : NULL;
}

int SectionAt(const ElfFile* file, uint32_t index, ElfSection* out) {
  const Elf64_Shdr* header = SectionHeader(file, index);
  if (header == NULL || header->sh_type == SHT_NOBITS) return 0;
  if (!IsInside(header->sh_offset, header->sh_size, file->size)) return 0;
  out->bytes = file->bytes + header->sh_offset;
  out->size = header->sh_size;
  out->address = header->sh_addr;
  out->link = header->sh_link;
  return 1;
}

int FindSection(const ElfFile* file, const char* name, ElfSection* out) {
  ElfSection names;
  if (!SectionAt(file, file->header->e_shstrndx, &names)) return 0;
  for (uint32_t i = 0; i < file->header->e_shnum; ++i) {
    const char* own = TextIn(&names, SectionHeader(file, i)->sh_name);
    if (own != NULL && IsSameText(own, name)) return SectionAt(file, i, out);
  }
  return 0;
}

const char* TextIn(const ElfSection* section, uint64_t at) {
  for (uint64_t end = at; end < section->size; ++end) {
    if (section->bytes[end] == '\0') return (const char*)section->bytes + at;
  }
  return NULL;
}

const Byte* BytesAt(const ElfFile* file, uint64_t address, uint64_t size) {
  const Elf64_Phdr* segments = (const Elf64_Phdr*)(file->bytes + file->header->e_phoff);
  for (uint32_t i = 0; i < file->header->e_phnum; ++i) {
    const Elf64_Phdr* segment = segments + i;
    if (segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
    if (!IsInside(address - segment->p_vaddr, size, segment->p_filesz)) continue;
    const uint64_t offset = segment->p_offset + (address - segment->p_vaddr);
    return IsInside(offset, size, file->size) ? file->bytes + offset : NULL;
  }
  return NULL;
}
