/* A program in C that uses the allocator over simulated memory, by the installed header and library. */
#include <ashlar.h>
#include <stdio.h>

int main(void) {
  ashlar_open_options options = {sizeof options};
  options.memory = ASHLAR_MEMORY_SIMULATED;
  options.capacity_bytes = (uint64_t)1 << 30;
  ashlar_allocator* allocator;
  if (ashlar_open(&options, &allocator) != ASHLAR_OK) return 1;
  void* memory;
  if (ashlar_allocate(allocator, (size_t)300 << 20, NULL, &memory) != ASHLAR_OK) return 2;
  if (ashlar_allocate(allocator, (size_t)1 << 30, NULL, &memory) != ASHLAR_OUT_OF_MEMORY) return 3;
  printf("%s: %.60s\n", ashlar_version(), ashlar_last_error());
  return ashlar_close(allocator) == ASHLAR_OK ? 0 : 4;
}
