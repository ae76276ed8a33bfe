#include "hollow/audit/redirect.h"

#include <sys/mman.h>

#include "hollow/audit/code.h"

// Whether the object's code there is its file's: nobody else has changed it, and the file is the one that was mapped.
static int IsAsInFile(const struct link_map* map, const ElfFile* elf, const Entry* entry) {
  const uint64_t bytes = entry->bytes < kMostJumpBytes ? entry->bytes : kMostJumpBytes;
  const Byte* in_file = BytesAt(elf, entry->address, bytes);
  return in_file != NULL && IsSameBytes(in_file, (const void*)(map->l_addr + entry->address), bytes);
}

typedef struct {
  uint64_t begin, end;  // whole pages
} Pages;

static Pages PagesOf(const struct link_map* map, const Redirection* all, size_t count) {
  Pages pages = {UINT64_MAX, 0};
  for (size_t i = 0; i < count; ++i) {
    const uint64_t begin = map->l_addr + all[i].entry->address, end = begin + kMostJumpBytes;
    if (begin < pages.begin) pages.begin = begin;
    if (end > pages.end) pages.end = end;
  }
  const uint64_t page_bytes = PageBytes();
  pages.begin = pages.begin / page_bytes * page_bytes;
  pages.end = (pages.end + page_bytes - 1) / page_bytes * page_bytes;
  return pages;
}

// Of the file, as the dynamic linker mapped them.
static void MapAgain(const struct link_map* map, const LoadedFile* loaded, const Pages* pages) {
  const Byte* in_file = BytesAt(&loaded->elf, pages->begin - map->l_addr, 1);
  if (in_file == NULL) return;
  MapFile((void*)pages->begin, pages->end - pages->begin, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, loaded->file,
          (uint64_t)(in_file - loaded->elf.bytes));
}

int Redirect(const struct link_map* map, const LoadedFile* loaded, const Redirection* all, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!IsAsInFile(map, &loaded->elf, all[i].entry)) return 0;
  }
  const Pages pages = PagesOf(map, all, count);
  const uint64_t bytes = pages.end - pages.begin;
  if (SetProtection(pages.begin, bytes, PROT_READ | PROT_WRITE) != 0) return 0;
  for (size_t i = 0; i < count; ++i) {
    const Entry* entry = all[i].entry;
    WriteJump((Byte*)(map->l_addr + entry->address), entry->bytes, all[i].target);
  }
  if (SetProtection(pages.begin, bytes, PROT_READ | PROT_EXEC) == 0) return 1;
  MapAgain(map, loaded, &pages);
  return 0;
}
