#include "hollow/audit/code.h"

enum { kJumpBytes = 14, kMarkBytes = 4, kLeaBytes = 7 };

// endbr64, where an indirect call may arrive: it stays.
static const Byte kMark[kMarkBytes] = {0xF3, 0x0F, 0x1E, 0xFA};

// jmp [rip + 0], and the address after it.
int WriteJump(Byte* function, uint64_t bytes, uint64_t target) {
  static const Byte kJump[] = {0xFF, 0x25, 0, 0, 0, 0};
  const int is_marked = bytes >= kMarkBytes && IsSameBytes(function, kMark, kMarkBytes);
  const uint64_t skipped = is_marked ? kMarkBytes : 0;
  if (bytes < skipped + kJumpBytes) return 0;
  CopyBytes(function + skipped, kJump, sizeof(kJump));
  CopyBytes(function + skipped + sizeof(kJump), &target, sizeof(target));
  return 1;
}

// The distance that an instruction `lea register, [rip + distance]` of seven bytes has; 0 where it is none.
static int32_t DistanceOfLea(const Byte* at) {
  const int is_lea = (at[0] == 0x48 || at[0] == 0x4C) && at[1] == 0x8D && (at[2] & 0xC7) == 0x05;
  int32_t distance = 0;
  if (is_lea) CopyBytes(&distance, at + 3, sizeof(distance));
  return distance;
}

void VisitReferences(const ElfSection* code, uint64_t lowest, uint64_t highest, ReferenceVisitor visit, void* context) {
  for (uint64_t i = 0; i + kLeaBytes <= code->size; ++i) {
    const int32_t distance = DistanceOfLea(code->bytes + i);
    const uint64_t place = code->address + i;
    const uint64_t address = place + kLeaBytes + (uint64_t)(int64_t)distance;
    if (distance != 0 && address >= lowest && address <= highest) visit(context, place, address);
  }
}
