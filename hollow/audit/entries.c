#include "hollow/audit/entries.h"

static int IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

int IsRuntimeName(const char* text) {
  if (HasPrefix(text, "__")) text += 2;
  return HasPrefix(text, "cuda") && IsUpper(text[4]);
}

// CUDA 12 alone has a second version of cudaGetDeviceProperties beside the first one. Libraries of kernels came
// after 11.
void LookForVersion(const char* name, VersionSigns* signs) {
  if (IsSameText(name, "cudaGetDeviceProperties_v2")) signs->has_second_properties = 1;
  if (IsSameText(name, "cudaLibraryLoadData")) signs->has_libraries = 1;
}

int MajorOf(const VersionSigns* signs) {
  if (signs->has_second_properties) return 12;
  return signs->has_libraries ? 13 : 11;
}

// The program's own, made by device linking: they call what is answered.
static int IsProgramsOwn(const char* name) { return HasPrefix(name, "__cudaRegisterLinkedBinary"); }

typedef struct {
  uint64_t first, last;
} Block;

// Where the answered functions lie.
static Block AnsweredBlock(const AnsweredNames* names, const Entry* entries, size_t count) {
  Block block = {UINT64_MAX, 0};
  for (size_t i = 0; i < count; ++i) {
    if (!names->is_answered(names->context, entries[i].name)) continue;
    if (entries[i].address < block.first) block.first = entries[i].address;
    if (entries[i].address > block.last) block.last = entries[i].address;
  }
  return block;
}

// A function of the program's own may have such a name too; it lies elsewhere.
static size_t WithoutPrograms(const AnsweredNames* names, Entry* entries, size_t count) {
  const Block block = AnsweredBlock(names, entries, count);
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    const int is_among = entries[i].address >= block.first && entries[i].address <= block.last;
    if (is_among && !IsProgramsOwn(entries[i].name)) entries[kept++] = entries[i];
  }
  return kept;
}

typedef struct {
  ElfSection symbols, names;
} SymbolTable;

static int FindSymbols(const ElfFile* file, SymbolTable* out) {
  return FindSection(file, ".symtab", &out->symbols) && SectionAt(file, out->symbols.link, &out->names);
}

// Null where it is not one that a runtime's function may have.
static const char* FunctionName(const SymbolTable* table, const Elf64_Sym* symbol) {
  const int is_defined = symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE;
  if (!is_defined || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) return NULL;
  const char* name = TextIn(&table->names, symbol->st_name);
  return name != NULL && IsRuntimeName(name) ? name : NULL;
}

size_t EntriesBySymbols(const ElfFile* file, const AnsweredNames* names, Entry* out, int* major) {
  SymbolTable table;
  if (!FindSymbols(file, &table)) return 0;
  int has_register = 0, has_version = 0;
  VersionSigns signs = {0, 0};
  size_t count = 0;
  const Elf64_Sym* symbols = (const Elf64_Sym*)table.symbols.bytes;
  for (uint64_t i = 0; i < table.symbols.size / sizeof(Elf64_Sym) && count < kMostEntries; ++i) {
    const char* name = FunctionName(&table, symbols + i);
    if (name == NULL) continue;
    LookForVersion(name, &signs);
    has_register |= IsSameText(name, "__cudaRegisterFatBinary");
    const int is_version = IsSameText(name, "cudaRuntimeGetVersion");
    has_version |= is_version;
    if (is_version) continue;
    out[count++] = (Entry){name, symbols[i].st_value, symbols[i].st_size};
  }
  *major = MajorOf(&signs);
  return has_register && has_version ? WithoutPrograms(names, out, count) : 0;
}

// The name of shared memory that each libcudart has in its text, seen in those of CUDA 12 and 13.
static int HasRuntimeText(const ElfFile* file) {
  static const char kText[] = "cudart.shm.%";  // after a slash, which our own library is without
  ElfSection texts;
  if (!FindSection(file, ".rodata", &texts)) return 0;
  for (uint64_t i = 0; i + sizeof(kText) < texts.size; ++i) {
    if (texts.bytes[i] == '/' && texts.bytes[i + 1] == 'c' &&
        IsSameBytes(texts.bytes + i + 1, kText, sizeof(kText) - 1))
      return 1;
  }
  return 0;
}

// A runtime opens the driver by name.
static int LooksNamesUp(const ElfFile* file) {
  ElfSection names;
  if (!FindSection(file, ".dynstr", &names)) return 0;
  for (uint64_t i = 0; i + sizeof("dlsym") <= names.size; ++i) {
    if (names.bytes[i] == 'd' && IsSameBytes(names.bytes + i, "dlsym", sizeof("dlsym"))) return 1;
  }
  return 0;
}

const FoundEntries* FindEntries(const ElfFile* file, const AnsweredNames* names) {
  static Entry entries[kMostEntries];
  static FoundEntries found;
  found.entries = entries;
  found.kind = kBySymbols;
  found.count = EntriesBySymbols(file, names, entries, &found.major);
  if (found.count > 0) return &found;
  found.kind = kNoRuntime;
  if (!LooksNamesUp(file) || !HasRuntimeText(file)) return &found;
  ElfSection kernels;
  const int has_kernels = FindSection(file, ".nvFatBinSegment", &kernels);
  found.count = has_kernels ? 0 : EntriesByNames(file, names, entries, &found.major);
  found.kind = found.count > 0 ? kByNames : kUnserved;
  return &found;
}
