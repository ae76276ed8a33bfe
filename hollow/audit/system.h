// What the auditor has in place of a C library: calls of Linux, and work on bytes.
//
//   const long file = OpenToRead(path);
//   if (file < 0) return;                      // -errno
//
// A library that the dynamic linker loads as an auditor lives in a namespace of its own. One that links the C library
// brings a second one into the process, so that this one links nothing. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_AUDIT_SYSTEM_H_
#define ASHLAR_HOLLOW_AUDIT_SYSTEM_H_

#include <stddef.h>
#include <stdint.h>

typedef unsigned char Byte;

// Each answers what Linux does: -errno where it fails.
long OpenToRead(const char* path);
long CloseFile(long file);
long ReadFile(long file, void* out, size_t bytes);
int64_t FileBytes(long file);
long WriteToStderr(const char* text, size_t bytes);
long SetProtection(uint64_t address, uint64_t bytes, int protection);
// As mmap.
void* MapFile(void* address, size_t bytes, int protection, int flags, long file, uint64_t offset);
long UnmapFile(const void* address, size_t bytes);
int IsMapped(const void* address);  // of what MapFile answered
// Of a page of memory.
uint64_t PageBytes(void);

size_t TextBytes(const char* text);  // without the zero
int IsSameText(const char* one, const char* other);
int HasPrefix(const char* text, const char* prefix);
int IsSameBytes(const void* one, const void* other, size_t bytes);
void CopyBytes(void* to, const void* from, size_t bytes);
// What follows the last slash.
const char* FileName(const char* path);

// One line on standard error: "ashlar: ", the subject, then what is said of it.
void Say(const char* subject, const char* what);

#endif  // ASHLAR_HOLLOW_AUDIT_SYSTEM_H_
