/* A program in C99 that uses the allocator by its C interface alone: GPU 0 with the argument `gpu`, else host memory.
 * It prints what it saw, and ends with 1 at the first thing that is not as include/ashlar.h says. */
#include <ashlar.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void Expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "client: not so: %s: %s\n", what, ashlar_last_error());
  exit(1);
}

static ashlar_allocator* OpenHost(void) {
  ashlar_open_options options;
  ashlar_allocator* allocator;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.conf = "max_split_size_mb:64";
  options.memory = ASHLAR_MEMORY_HOST;
  options.capacity_bytes = (uint64_t)256 << 20;
  Expect(ashlar_open(&options, &allocator) == ASHLAR_OK, "host memory opens");
  return allocator;
}

static void UseMemory(ashlar_allocator* allocator, int is_host) {
  void* first;
  void* again;
  Expect(ashlar_allocate(allocator, (size_t)30 << 20, NULL, &first) == ASHLAR_OK, "30 MiB are there");
  if (is_host) memset(first, 7, (size_t)30 << 20);
  Expect(ashlar_free(allocator, first) == ASHLAR_OK, "they are freed");
  Expect(ashlar_free(allocator, first) == ASHLAR_INVALID_ARGUMENT, "but once");
  Expect(strstr(ashlar_last_error(), "ashlar_free: no live block") != NULL, "the text says which call");
  Expect(ashlar_allocate(allocator, (size_t)30 << 20, NULL, &again) == ASHLAR_OK && again == first, "and are reused");
  Expect(ashlar_free(allocator, again) == ASHLAR_OK, "again");
}

static void FailAtLimit(ashlar_allocator* allocator) {
  void* memory;
  Expect(ashlar_set_memory_limit(allocator, (uint64_t)64 << 20) == ASHLAR_OK, "a limit");
  Expect(ashlar_allocate(allocator, (size_t)100 << 20, NULL, &memory) == ASHLAR_OUT_OF_MEMORY, "is kept");
  Expect(memory == NULL && strncmp(ashlar_last_error(), "out of memory: 100.00 MiB", 24) == 0, "and told");
  Expect(ashlar_set_memory_limit(allocator, UINT64_MAX) == ASHLAR_OK, "and taken back");
}

/* A child of fork ends well, whatever the device says of its memory. */
static void Fork(ashlar_allocator* allocator) {
  int status = 1;
  const pid_t child = fork();
  if (child == 0) {
    void* memory;
    if (ashlar_allocate(allocator, 4096, NULL, &memory) == ASHLAR_OK) ashlar_free(allocator, memory);
    _exit(0);
  }
  Expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child ends well");
}

int main(int argc, char** argv) {
  const int is_gpu = argc > 1 && strcmp(argv[1], "gpu") == 0;
  ashlar_allocator* allocator = NULL;
  ashlar_statistics statistics;
  Expect(ashlar_abi_version() == ASHLAR_ABI_VERSION, "the library is the header's");
  if (is_gpu) {
    Expect(ashlar_process_allocator(0, &allocator) == ASHLAR_OK, "GPU 0 is there");
  } else {
    allocator = OpenHost();
  }
  UseMemory(allocator, !is_gpu);
  FailAtLimit(allocator);
  Fork(allocator);
  statistics.struct_size = sizeof statistics;
  Expect(ashlar_get_statistics(allocator, &statistics) == ASHLAR_OK, "statistics");
  Expect(statistics.allocated_bytes == 0 && statistics.allocations == 2 && statistics.frees == 2, "and they are right");
  printf("2 requests took %llu device calls, %llu MiB\n", (unsigned long long)statistics.device_allocations,
         (unsigned long long)(statistics.peak_reserved_bytes >> 20));
  Expect(ashlar_empty_cache(allocator) == ASHLAR_OK, "the cache is emptied");
  Expect(ashlar_close(allocator) == (is_gpu ? ASHLAR_FAILED_PRECONDITION : ASHLAR_OK), "the end");
  return 0;
}
