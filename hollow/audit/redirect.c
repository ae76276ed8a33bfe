#include "hollow/audit/redirect.h"

#include <sys/mman.h>

enum { kPageBytes = 4096, kJumpBytes = 14, kMarkBytes = 4 };

// endbr64, where an indirect call may arrive.
static const Byte kMark[kMarkBytes] = {0xF3, 0x0F, 0x1E, 0xFA};

// jmp [rip + 0], and the address after it.
static void WriteJump(Byte* at, uint64_t target) {
  static const Byte kJump[] = {0xFF, 0x25, 0, 0, 0, 0};
  CopyBytes(at, kJump, sizeof(kJump));
  CopyBytes(at + sizeof(kJump), &target, sizeof(target));
}

// Whether the object's code there is its file's: nobody else has changed it, and the file is the one that was mapped.
static int IsAsInFile(const struct link_map* map, const ElfFile* elf, const Entry* entry) {
  const uint64_t bytes = entry->bytes < kJumpBytes + kMarkBytes ? entry->bytes : kJumpBytes + kMarkBytes;
  const Byte* in_file = BytesAt(elf, entry->address, bytes);
  return in_file != NULL && IsSameBytes(in_file, (const void*)(map->l_addr + entry->address), bytes);
}

// Where the jump goes; 0 where the function has no room for it.
static uint64_t PlaceIn(const struct link_map* map, const Entry* entry) {
  const uint64_t address = map->l_addr + entry->address;
  const int is_marked = entry->bytes >= kMarkBytes && IsSameBytes((const void*)address, kMark, kMarkBytes);
  const uint64_t skipped = is_marked ? kMarkBytes : 0;
  return entry->bytes >= skipped + kJumpBytes ? address + skipped : 0;
}

typedef struct {
  uint64_t begin, end;  // whole pages
} Pages;

static Pages PagesOf(const struct link_map* map, const Redirection* all, size_t count) {
  Pages pages = {UINT64_MAX, 0};
  for (size_t i = 0; i < count; ++i) {
    const uint64_t begin = map->l_addr + all[i].entry->address, end = begin + kJumpBytes + kMarkBytes;
    if (begin < pages.begin) pages.begin = begin;
    if (end > pages.end) pages.end = end;
  }
  pages.begin = pages.begin / kPageBytes * kPageBytes;
  pages.end = (pages.end + kPageBytes - 1) / kPageBytes * kPageBytes;
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
    const uint64_t place = PlaceIn(map, all[i].entry);
    if (place != 0) WriteJump((Byte*)place, all[i].target);
  }
  if (SetProtection(pages.begin, bytes, PROT_READ | PROT_EXEC) == 0) return 1;
  MapAgain(map, loaded, &pages);
  return 0;
}
