// The code of the processor that this is built for: a jump, and the places that take an address. A processor has a
// source of its own: code_x86_64.c, code_aarch64.c.
//
//   WriteJump((Byte*)function, bytes, target);             // 0 where it has no room
//   VisitReferences(&code, lowest, highest, Refer, &found);
//
// Thread rule: any thread. Code that is changed is run by nobody meanwhile.
#ifndef ASHLAR_HOLLOW_AUDIT_CODE_H_
#define ASHLAR_HOLLOW_AUDIT_CODE_H_

#include "hollow/audit/elf_file.h"

#if defined(__x86_64__)
enum { kMachine = EM_X86_64, kMostJumpBytes = 18 };
#elif defined(__aarch64__)
enum { kMachine = EM_AARCH64, kMostJumpBytes = 20 };
#else
#error "the auditor knows no code of this processor: add a source beside code_x86_64.c, and a call of Linux in system.c"
#endif

// Makes a function of that many bytes go on at the target, by its first kMostJumpBytes at most.
int WriteJump(Byte* function, uint64_t bytes, uint64_t target);

// Calls `visit` with each place that takes an address from `lowest` to `highest`: both as linked.
typedef void (*ReferenceVisitor)(void* context, uint64_t place, uint64_t address);
void VisitReferences(const ElfSection* code, uint64_t lowest, uint64_t highest, ReferenceVisitor visit, void* context);

#endif  // ASHLAR_HOLLOW_AUDIT_CODE_H_
