#include "hollow/audit/loaded.h"

#include <sys/mman.h>

// One line of /proc/self/maps after the other, of a buffer that is read again and again.
typedef struct {
  long file;
  char bytes[1024];
  long count, at;
} MapsReader;

static int NextByte(MapsReader* reader) {
  if (reader->at == reader->count) {
    reader->count = ReadFile(reader->file, reader->bytes, sizeof(reader->bytes));
    reader->at = 0;
    if (reader->count <= 0) return -1;
  }
  return (Byte)reader->bytes[reader->at++];
}

static int DigitOf(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Returns the byte after the number.
static int ReadHexadecimal(MapsReader* reader, uint64_t* out) {
  int c = 0;
  *out = 0;
  while ((c = NextByte(reader)) >= 0 && DigitOf(c) >= 0) *out = *out * 16 + (uint64_t)DigitOf(c);
  return c;
}

// The rest of a line from its path on, which begins with a slash: its bytes, 0 where the line has none, -1 at the end
// of the file.
static long ReadPath(MapsReader* reader, char* out) {
  long bytes = 0;
  int c = 0;
  while ((c = NextByte(reader)) >= 0 && c != '\n') {
    if ((c == '/' || bytes > 0) && bytes < kMostPath - 1) out[bytes++] = (char)c;
  }
  out[bytes] = '\0';
  return c < 0 ? -1 : bytes;
}

// The file that is mapped where `address` is. The program's own map has no name, and /proc/self/exe is the dynamic
// linker where that was started by name.
static int PathOfAddress(uint64_t address, char* out) {
  MapsReader reader;
  reader.file = OpenToRead("/proc/self/maps");
  reader.count = reader.at = 0;
  if (reader.file < 0) return 0;
  long bytes = 0;
  uint64_t first = 0, end = 0;
  do {
    if (ReadHexadecimal(&reader, &first) < 0) break;
    ReadHexadecimal(&reader, &end);
    bytes = ReadPath(&reader, out);
  } while (bytes >= 0 && (address < first || address >= end));
  CloseFile(reader.file);
  return bytes > 0 && address >= first && address < end;
}

static int PathOf(const struct link_map* map, char* out) {
  if (map->l_name == NULL || map->l_name[0] == '\0') return PathOfAddress((uint64_t)map->l_ld, out);
  const size_t bytes = TextBytes(map->l_name) + 1;
  if (bytes > kMostPath) return 0;
  CopyBytes(out, map->l_name, bytes);
  return 1;
}

int OpenLoaded(const struct link_map* map, LoadedFile* out) {
  if (!PathOf(map, out->path)) return 0;
  out->file = OpenToRead(out->path);
  if (out->file < 0) return 0;
  const int64_t size = FileBytes(out->file);
  const Byte* bytes = size > 0 ? MapFile(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, out->file, 0) : MAP_FAILED;
  if (IsMapped(bytes)) {
    if (ReadElfFile(bytes, (uint64_t)size, &out->elf)) return 1;
    UnmapFile(bytes, (size_t)size);
  }
  CloseFile(out->file);
  return 0;
}

void CloseLoaded(LoadedFile* loaded) {
  UnmapFile(loaded->elf.bytes, loaded->elf.size);
  CloseFile(loaded->file);
}

// What an object's dynamic section says of its symbols. An address there may have the object's own added, or not yet.
typedef struct {
  const uint32_t* hash;
  const Elf64_Sym* symbols;
  const char* names;
} Exports;

static const void* AddressIn(const struct link_map* map, uint64_t value) {
  return (const void*)(value < map->l_addr ? value + map->l_addr : value);
}

static int ReadExports(const struct link_map* map, Exports* out) {
  *out = (Exports){NULL, NULL, NULL};
  for (const Elf64_Dyn* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const void* address = AddressIn(map, entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) out->hash = address;
    if (entry->d_tag == DT_SYMTAB) out->symbols = address;
    if (entry->d_tag == DT_STRTAB) out->names = address;
  }
  return out->hash != NULL && out->symbols != NULL && out->names != NULL;
}

static uint32_t HashOf(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + (Byte)*name;
  return hash;
}

// The table of DT_GNU_HASH: counts of buckets and of words of its filter, its first symbol, a shift; then the filter,
// the buckets, and a hash for each symbol, whose last bit ends a bucket's chain.
uint64_t ExportOf(const struct link_map* map, const char* name) {
  Exports exports;
  if (!ReadExports(map, &exports)) return 0;
  const uint32_t buckets = exports.hash[0], first = exports.hash[1], words = exports.hash[2];
  const uint32_t* bucket = exports.hash + 4 + words * 2;
  const uint32_t* chain = bucket + buckets;
  const uint32_t wanted = HashOf(name);
  if (buckets == 0) return 0;
  uint32_t at = bucket[wanted % buckets];
  if (at < first) return 0;
  for (;; ++at) {
    const uint32_t hash = chain[at - first];
    const Elf64_Sym* symbol = exports.symbols + at;
    const int is_it = (hash | 1) == (wanted | 1) && symbol->st_shndx != SHN_UNDEF;
    if (is_it && IsSameText(exports.names + symbol->st_name, name)) return map->l_addr + symbol->st_value;
    if ((hash & 1) != 0) return 0;
  }
}
