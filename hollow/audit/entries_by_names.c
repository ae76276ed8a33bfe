#include "hollow/audit/code.h"
#include "hollow/audit/entries.h"

// Functions of a runtime follow each other at distances of some hundred to some thousand bytes.
enum { kMostGapBytes = 64 << 10 };

// The text of a name, and the function that refers to it. Copies of one name have one `first`, which alone has the
// function.
typedef struct {
  uint64_t address;
  const char* name;
  size_t first;
  uint64_t function;  // 0: none
  int is_unclear;     // several functions refer to it
} NameText;

static NameText g_texts[kMostEntries];

static int IsWordByte(Byte c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Null where no name begins there that is a whole text.
static const char* NameAt(const ElfSection* texts, uint64_t at) {
  uint64_t end = at;
  while (end < texts->size && IsWordByte(texts->bytes[end])) ++end;
  if (end == texts->size || texts->bytes[end] != '\0') return NULL;
  const char* name = (const char*)texts->bytes + at;
  return IsRuntimeName(name) ? name : NULL;
}

static size_t FirstOfName(const char* name, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (IsSameText(g_texts[i].name, name)) return g_texts[i].first;
  }
  return count;
}

// In the order of their addresses.
static size_t CollectTexts(const ElfSection* texts, const AnsweredNames* names, VersionSigns* signs) {
  size_t count = 0;
  for (uint64_t i = 0; i + 4 < texts->size && count < kMostEntries; ++i) {
    if (texts->bytes[i] != 'c' || !IsSameBytes(texts->bytes + i, "cuda", 4)) continue;
    const char* name = NameAt(texts, i);
    if (name == NULL) continue;
    LookForVersion(name, signs);
    if (!names->is_answered(names->context, name)) continue;
    g_texts[count] = (NameText){texts->address + i, name, FirstOfName(name, count), 0, 0};
    ++count;
  }
  return count;
}

static NameText* TextAt(uint64_t address, size_t count) {
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (g_texts[middle].address < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && g_texts[low].address == address ? g_texts + g_texts[low].first : NULL;
}

// The table of .eh_frame_hdr: where each function begins, in order, counted from the section's own address.
// Layout: Linux Standard Base, "Exception Frames".
typedef struct {
  int32_t function, frame;
} FrameRow;

typedef struct {
  const FrameRow* rows;
  size_t count;
  uint64_t address;
} FrameTable;

static int FindFrames(const ElfFile* file, FrameTable* out) {
  enum { kFourBytes = 0x03, kFromSection = 0x3B, kHeaderBytes = 12 };
  ElfSection section;
  if (!FindSection(file, ".eh_frame_hdr", &section) || section.size < kHeaderBytes) return 0;
  const Byte* bytes = section.bytes;
  if (bytes[0] != 1 || bytes[2] != kFourBytes || bytes[3] != kFromSection) return 0;
  uint32_t count = 0;
  CopyBytes(&count, bytes + 8, sizeof(count));
  if (count == 0 || count > (section.size - kHeaderBytes) / sizeof(FrameRow)) return 0;
  out->rows = (const FrameRow*)(bytes + kHeaderBytes);
  out->count = count;
  out->address = section.address;
  return 1;
}

static uint64_t FunctionAt(const FrameTable* frames, size_t row) {
  return frames->address + (uint64_t)(int64_t)frames->rows[row].function;
}

// The last row whose function does not begin above the address; the count where there is none.
static size_t RowOf(const FrameTable* frames, uint64_t address) {
  size_t low = 0, high = frames->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (FunctionAt(frames, middle) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? frames->count : low - 1;
}

static void ReferTo(NameText* text, uint64_t function) {
  if (text->function != 0 && text->function != function) text->is_unclear = 1;
  text->function = function;
}

typedef struct {
  const FrameTable* frames;
  size_t texts_count;
} Referred;

static void Refer(void* context, uint64_t place, uint64_t address) {
  const Referred* referred = context;
  NameText* text = TextAt(address, referred->texts_count);
  if (text == NULL) return;
  const size_t row = RowOf(referred->frames, place);
  if (row < referred->frames->count) ReferTo(text, FunctionAt(referred->frames, row));
}

static uint64_t BytesOfFunction(const FrameTable* frames, const ElfSection* code, uint64_t function) {
  const size_t next = RowOf(frames, function) + 1;
  return (next < frames->count ? FunctionAt(frames, next) : code->address + code->size) - function;
}

static void Insert(Entry* entries, size_t count, Entry entry) {
  while (count > 0 && entries[count - 1].address > entry.address) {
    entries[count] = entries[count - 1];
    --count;
  }
  entries[count] = entry;
}

// Whether no two of them are one function, and none lies apart.
static int AreTogether(const Entry* entries, size_t count) {
  for (size_t i = 1; i < count; ++i) {
    const uint64_t gap = entries[i].address - entries[i - 1].address;
    if (gap == 0 || gap > kMostGapBytes) return 0;
  }
  return 1;
}

size_t EntriesByNames(const ElfFile* file, const AnsweredNames* names, Entry* out, int* major) {
  ElfSection texts, code;
  FrameTable frames;
  if (!FindSection(file, ".rodata", &texts) || !FindSection(file, ".text", &code) || !FindFrames(file, &frames))
    return 0;
  VersionSigns signs = {0, 0};
  const size_t texts_count = CollectTexts(&texts, names, &signs);
  if (texts_count == 0) return 0;
  Referred referred = {&frames, texts_count};
  VisitReferences(&code, g_texts[0].address, g_texts[texts_count - 1].address, Refer, &referred);
  size_t count = 0;
  for (size_t i = 0; i < texts_count; ++i) {
    const NameText* text = g_texts + i;
    const int is_found = text->first == i && text->function != 0 && !text->is_unclear;
    if (!is_found || IsSameText(text->name, "cudaRuntimeGetVersion")) continue;
    const uint64_t bytes = BytesOfFunction(&frames, &code, text->function);
    Insert(out, count++, (Entry){text->name, text->function, bytes});
  }
  *major = MajorOf(&signs);
  return AreTogether(out, count) ? count : 0;
}
