#include "hollow/audit/system.h"

#include <asm/unistd.h>
#include <elf.h>
#include <fcntl.h>

#if defined(__x86_64__)
static long Call(long number, long a, long b, long c, long d, long e, long f) {
  long result = number;
  register long fourth __asm__("r10") = d;
  register long fifth __asm__("r8") = e;
  register long sixth __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
static long Call(long number, long a, long b, long c, long d, long e, long f) {
  register long call __asm__("x8") = number;
  register long result __asm__("x0") = a;
  register long second __asm__("x1") = b;
  register long third __asm__("x2") = c;
  register long fourth __asm__("x3") = d;
  register long fifth __asm__("x4") = e;
  register long sixth __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(result)
                   : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "memory");
  return result;
}
#endif

enum { kFromEnd = 2, kMostErrno = 4095 };

long OpenToRead(const char* path) { return Call(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0); }
long CloseFile(long file) { return Call(__NR_close, file, 0, 0, 0, 0, 0); }
long ReadFile(long file, void* out, size_t bytes) { return Call(__NR_read, file, (long)out, (long)bytes, 0, 0, 0); }
int64_t FileBytes(long file) { return Call(__NR_lseek, file, 0, kFromEnd, 0, 0, 0); }
long WriteToStderr(const char* text, size_t bytes) { return Call(__NR_write, 2, (long)text, (long)bytes, 0, 0, 0); }
long SetProtection(uint64_t address, uint64_t bytes, int protection) {
  return Call(__NR_mprotect, (long)address, (long)bytes, protection, 0, 0, 0);
}
void* MapFile(void* address, size_t bytes, int protection, int flags, long file, uint64_t offset) {
  return (void*)Call(__NR_mmap, (long)address, (long)bytes, protection, flags, file, (long)offset);
}
long UnmapFile(const void* address, size_t bytes) { return Call(__NR_munmap, (long)address, (long)bytes, 0, 0, 0, 0); }
int IsMapped(const void* address) { return (uintptr_t)address < (uintptr_t)-kMostErrno; }

// On aarch64 a kernel has one of three sizes; it says which one to each program that it starts.
uint64_t PageBytes(void) {
  enum { kUsual = 4096 };
  Elf64_auxv_t fact = {AT_NULL, {0}};
  const long file = OpenToRead("/proc/self/auxv");
  if (file < 0) return kUsual;
  while (ReadFile(file, &fact, sizeof(fact)) == (long)sizeof(fact) && fact.a_type != AT_PAGESZ) {
  }
  CloseFile(file);
  return fact.a_type == AT_PAGESZ ? fact.a_un.a_val : kUsual;
}

size_t TextBytes(const char* text) {
  size_t bytes = 0;
  while (text[bytes] != '\0') ++bytes;
  return bytes;
}

int IsSameText(const char* one, const char* other) {
  while (*one != '\0' && *one == *other) ++one, ++other;
  return *one == *other;
}

int HasPrefix(const char* text, const char* prefix) {
  while (*prefix != '\0' && *text == *prefix) ++text, ++prefix;
  return *prefix == '\0';
}

int IsSameBytes(const void* one, const void* other, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    if (((const Byte*)one)[i] != ((const Byte*)other)[i]) return 0;
  }
  return 1;
}

void CopyBytes(void* to, const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) ((Byte*)to)[i] = ((const Byte*)from)[i];
}

const char* FileName(const char* path) {
  const char* name = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

void Say(const char* subject, const char* what) {
  enum { kMostText = 1024 };
  char line[kMostText];
  size_t bytes = 0;
  const char* parts[] = {"ashlar: ", subject, what, "\n"};
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    for (const char* at = parts[i]; *at != '\0' && bytes < kMostText; ++at) line[bytes++] = *at;
  }
  WriteToStderr(line, bytes);
}
