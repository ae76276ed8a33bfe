// Layout of instructions: Arm Architecture Reference Manual for A-profile, chapter C4 ("A64 Instruction Set
// Encoding"). Which registers a call keeps: Procedure Call Standard for the Arm 64-bit Architecture.
#include "hollow/audit/code.h"

enum { kInstructionBytes = 4, kRegisters = 32, kFirstKept = 19, kPageOfAdrp = 4096 };

// An indirect call may arrive (bti c); the address below into x16; go there. The function's own first instruction may
// sign its return address, which nobody would check: it must not run.
int WriteJump(Byte* function, uint64_t bytes, uint64_t target) {
  static const uint32_t kJump[] = {0xD503245F, 0x58000050, 0xD61F0200};
  if (bytes < sizeof(kJump) + sizeof(target)) return 0;
  CopyBytes(function, kJump, sizeof(kJump));
  CopyBytes(function + sizeof(kJump), &target, sizeof(target));
  __builtin___clear_cache((char*)function, (char*)function + sizeof(kJump) + sizeof(target));
  return 1;
}

static uint32_t InstructionAt(const ElfSection* code, uint64_t at) {
  uint32_t instruction = 0;
  CopyBytes(&instruction, code->bytes + at, sizeof(instruction));
  return instruction;
}

static int IsAdr(uint32_t instruction) { return (instruction & 0x9F000000) == 0x10000000; }
static int IsAdrp(uint32_t instruction) { return (instruction & 0x9F000000) == 0x90000000; }
// Of 64 bits, with a number.
static int IsAdd(uint32_t instruction) { return (instruction & 0xFF800000) == 0x91000000; }
static int IsSubtract(uint32_t instruction) { return (instruction & 0xFF800000) == 0xD1000000; }
static int IsPair(uint32_t instruction) { return (instruction & 0x3A000000) == 0x28000000; }  // loads or stores two
static int IsBranch(uint32_t instruction) { return (instruction & 0x1C000000) == 0x14000000; }
// To where it depends on nothing, a call's return address kept or not: b, bl, and those by a register.
static int IsSureBranch(uint32_t instruction) {
  return (instruction & 0x7C000000) == 0x14000000 || (instruction & 0xFE000000) == 0xD6000000;
}

// Of adr and adrp: 21 bits with a sign, the lowest two of them apart.
static int64_t DistanceOf(uint32_t instruction) {
  const uint32_t bits = ((instruction >> 5 & 0x7FFFF) << 2) | (instruction >> 29 & 3);
  return (int64_t)bits - ((int64_t)(bits >> 20) << 21);
}

static uint64_t NumberOf(uint32_t instruction) {
  return (uint64_t)(instruction >> 10 & 0xFFF) << ((instruction >> 22 & 1) * 12);
}

// What instructions before are known to have put into a register.
typedef struct {
  uint64_t value;  // 0: nothing is known
  uint64_t place;  // of the instruction; 0: it takes no address by itself
} Made;

typedef struct {
  Made in[kRegisters];
  uint64_t lowest, highest;
  ReferenceVisitor visit;
  void* context;
} Reading;

// Of what was in the register it is known now that no other address was made of it.
static void Put(Reading* reading, uint32_t number, Made made) {
  const Made before = reading->in[number];
  reading->in[number] = made;
  if (before.place == 0 || before.value < reading->lowest || before.value > reading->highest) return;
  reading->visit(reading->context, before.place, before.value);
}

// What the instruction puts into its first register. An address is made of its page and one or more numbers that are
// added to it or taken away: often of an address in the middle, which is not what is referred to.
static Made MadeBy(uint32_t instruction, uint64_t place, Reading* reading) {
  if (IsAdr(instruction)) return (Made){place + (uint64_t)DistanceOf(instruction), place};
  if (IsAdrp(instruction)) {
    return (Made){place / kPageOfAdrp * kPageOfAdrp + (uint64_t)(DistanceOf(instruction) * kPageOfAdrp), 0};
  }
  Made* from = reading->in + (instruction >> 5) % kRegisters;
  if (from->value == 0 || (!IsAdd(instruction) && !IsSubtract(instruction))) return (Made){0, 0};
  from->place = 0;
  return (Made){from->value + (IsAdd(instruction) ? NumberOf(instruction) : -NumberOf(instruction)), place};
}

// A register that an instruction stores counts as written too: less is known then.
static void Read(uint32_t instruction, uint64_t place, Reading* reading) {
  if (IsSureBranch(instruction)) {
    for (uint32_t i = 0; i < kFirstKept; ++i) Put(reading, i, (Made){0, 0});
  }
  if (IsBranch(instruction)) return;
  Put(reading, instruction % kRegisters, MadeBy(instruction, place, reading));
  if (IsPair(instruction)) Put(reading, (instruction >> 10) % kRegisters, (Made){0, 0});
}

void VisitReferences(const ElfSection* code, uint64_t lowest, uint64_t highest, ReferenceVisitor visit, void* context) {
  Reading reading = {{{0, 0}}, lowest, highest, visit, context};
  for (uint64_t i = 0; i + kInstructionBytes <= code->size; i += kInstructionBytes) {
    Read(InstructionAt(code, i), code->address + i, &reading);
  }
  for (uint32_t i = 0; i < kRegisters; ++i) Put(&reading, i, (Made){0, 0});
}
