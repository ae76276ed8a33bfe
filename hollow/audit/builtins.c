// What a compiler may call unasked in place of a loop or of an assignment, C library or not.
#include "hollow/audit/system.h"

void* memset(void* to, int value, size_t bytes);
void* memcpy(void* to, const void* from, size_t bytes);

void* memset(void* to, int value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) ((Byte*)to)[i] = (Byte)value;
  return to;
}

void* memcpy(void* to, const void* from, size_t bytes) {
  CopyBytes(to, from, bytes);
  return to;
}
