/* The C interface of the caching allocator: library libashlar.so. It needs no C++ of the caller's, no Abseil and no
 * CUDA toolkit, and no exception comes out of it.
 *
 *   ashlar_allocator* allocator;
 *   if (ashlar_process_allocator(0, &allocator) != ASHLAR_OK) die(ashlar_last_error());
 *   void* memory;
 *   ashlar_status status = ashlar_allocate(allocator, 300 << 20, stream, &memory);
 *   if (status == ASHLAR_OUT_OF_MEMORY) fputs(ashlar_last_error(), stderr);   (where every byte is, at most 12 lines)
 *   ashlar_free(allocator, memory);                            (reused in the order of `stream`)
 *
 * ABI: a function keeps its meaning while ASHLAR_ABI_VERSION, which is also the library's soname, stays the same. A
 * struct that may grow begins with its size, which the caller sets.
 *
 * Errors: a call that fails returns what failed and leaves a text for its thread in ashlar_last_error. It changes
 * nothing else, and writes no output, unless its comment says so. An argument that may not be NULL and is, an allocator
 * that was closed: undefined, as in C.
 *
 * Threads: any thread may call any function at any time, but ashlar_close. Sizes are bytes. Streams are CUDA's
 * (cudaStream_t, CUstream), NULL the default stream. Memory may be freed by another thread than the one that allocated.
 * fork: in the child, allocators of a GPU fail every request; nothing crashes.
 */
#ifndef ASHLAR_H_
#define ASHLAR_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASHLAR_ABI_VERSION 1
#define ASHLAR_API __attribute__((visibility("default")))

typedef struct ashlar_allocator ashlar_allocator;
typedef void* ashlar_stream;

typedef int32_t ashlar_status;
enum {
  ASHLAR_OK = 0,
  ASHLAR_OUT_OF_MEMORY = 1,       /* the device's memory is not enough, after everything was tried */
  ASHLAR_INVALID_ARGUMENT = 2,    /* an unknown setting, no such device, no live block at that address */
  ASHLAR_FAILED_PRECONDITION = 3, /* not in this state: a pool has a route already, a file is being written */
  ASHLAR_UNAVAILABLE = 4,         /* no driver, no GPU */
  ASHLAR_DEVICE_ERROR = 5,        /* the device's own error, by call and name */
  ASHLAR_INTERNAL = 6             /* anything else, such as no host memory */
};

/* ASHLAR_ABI_VERSION of the library that is loaded, and its version, such as "0.1.0". */
ASHLAR_API uint32_t ashlar_abi_version(void);
ASHLAR_API const char* ashlar_version(void);
/* Of this thread's last call that failed; "" where none has. Valid until the thread's next call that fails. */
ASHLAR_API const char* ashlar_last_error(void);

/* --- allocators ---
 * The process's allocator of GPU `device`: one for each device, which every integration of this process shares
 * (PyTorch's plug-in, numba's, CuPy's, ...), so that memory which one of them frees serves the others. The first call
 * opens it, with the settings of ashlar_configure_process, else of ASHLAR_CONF (docs/library/settings.md). It is never
 * closed. */
ASHLAR_API ashlar_status ashlar_process_allocator(int device, ashlar_allocator** out);
/* The settings of process allocators that are not open yet, as text; NULL: those of the environment again.
 * ASHLAR_INVALID_ARGUMENT: a key or value that is none. ASHLAR_FAILED_PRECONDITION: one is open already, and its
 * settings are others. */
ASHLAR_API ashlar_status ashlar_configure_process(const char* conf);

enum {
  ASHLAR_MEMORY_CUDA = 0,     /* of a GPU, by its driver */
  ASHLAR_MEMORY_HOST = 1,     /* by mmap, without a GPU */
  ASHLAR_MEMORY_SIMULATED = 2 /* addresses without memory behind them, for tests */
};

typedef struct ashlar_open_options {
  size_t struct_size;      /* sizeof(ashlar_open_options) */
  const char* conf;        /* settings; NULL: those of the environment */
  int32_t memory;          /* ASHLAR_MEMORY_... */
  int32_t device;          /* ordinal of the GPU */
  uint64_t capacity_bytes; /* of host or simulated memory; 0: 4 GiB, 80 GiB */
} ashlar_open_options;

/* An allocator of the caller's own; NULL options: of GPU 0. */
ASHLAR_API ashlar_status ashlar_open(const ashlar_open_options* options, ashlar_allocator** out);
/* Returns all its memory to the device, and ends its recording: where that fails the allocator is closed all the same,
 * and the text says what the file lacks. Nobody may use it or its memory any more. NULL is nothing to do. A process
 * allocator: ASHLAR_FAILED_PRECONDITION, and it stays. */
ASHLAR_API ashlar_status ashlar_close(ashlar_allocator* allocator);
/* The ordinal of its GPU; -1 for other memory. */
ASHLAR_API int ashlar_device(const ashlar_allocator* allocator);

/* --- memory ---
 * At least `bytes`, at an address that is a multiple of 512, for work on `stream`. 0 bytes: NULL and ASHLAR_OK. */
ASHLAR_API ashlar_status ashlar_allocate(ashlar_allocator* allocator, size_t bytes, ashlar_stream stream, void** out);
/* NULL is nothing to do. ASHLAR_INVALID_ARGUMENT: no live block begins there. */
ASHLAR_API ashlar_status ashlar_free(ashlar_allocator* allocator, void* memory);
/* `stream` uses the block too: once freed, it waits for that stream's work so far. ASHLAR_INVALID_ARGUMENT: as above.
 */
ASHLAR_API ashlar_status ashlar_record_stream(ashlar_allocator* allocator, void* memory, ashlar_stream stream);

typedef struct ashlar_block {
  size_t struct_size;       /* sizeof(ashlar_block) */
  void* address;            /* where the block begins */
  uint64_t size_bytes;      /* what it spans */
  uint64_t requested_bytes; /* what was asked for */
  void* segment_address;    /* of the memory that the device gave, in which the block lies */
  uint64_t segment_bytes;
} ashlar_block;

/* The live block that holds `address`, which may lie inside it. All threads stand still while
 * the blocks of one segment are walked. ASHLAR_INVALID_ARGUMENT: there is none. */
ASHLAR_API ashlar_status ashlar_find_block(ashlar_allocator* allocator, const void* address, ashlar_block* out);

typedef struct ashlar_shared_page {
  size_t struct_size;  /* sizeof(ashlar_shared_page) */
  void* address;       /* where the page begins, */
  uint64_t size_bytes; /* and all that one handle of cuMemCreate's holds */
  int32_t file;        /* a descriptor for cuMemImportFromShareableHandle; it is closed when the page is unmapped */
} ashlar_shared_page;
/* The page that holds `address` of a live block in an expandable segment, for another process of the machine.
 * ASHLAR_INVALID_ARGUMENT: there is no such block; ASHLAR_FAILED_PRECONDITION: the device shares no pages. */
ASHLAR_API ashlar_status ashlar_share_page(ashlar_allocator* allocator, const void* address, ashlar_shared_page* out);

/* 1 where the address lies in a segment of this allocator, in a live block or not, or in a range that it reserved; else
 * 0. O(log segments), under the allocator's locks. */
ASHLAR_API int ashlar_holds(const ashlar_allocator* allocator, const void* address);

/* 1 where blocks of about this address were handed out, else 0: a hint that takes no lock, and may be wrong both ways.
 * Who has several allocators asks first those that say 1. */
ASHLAR_API int ashlar_may_hold(const ashlar_allocator* allocator, const void* address);
/* A block of exactly this range, which is free now, for a request of `requested_bytes`: how a checkpoint of a pool is
 * gone back to, once what was allocated since is freed. ASHLAR_INVALID_ARGUMENT: it is not free as a whole. */
ASHLAR_API ashlar_status ashlar_allocate_at(ashlar_allocator* allocator, void* address, size_t block_bytes,
                                            size_t requested_bytes);

/* As ashlar_allocate, at this very address: in free memory of the stream and of the pool that the request is routed to,
 * cut by the rules above it. What is free below it in the same block is handed out first and freed at once.
 * ASHLAR_INVALID_ARGUMENT: there is no such free memory. */
ASHLAR_API ashlar_status ashlar_allocate_exactly(ashlar_allocator* allocator, size_t bytes, ashlar_stream stream,
                                                 void* address);

/* Completes the frees whose streams are done; every ashlar_allocate does this first. */
ASHLAR_API ashlar_status ashlar_poll(ashlar_allocator* allocator);
/* Waits for every pending free and returns all whole-free memory to the device. */
ASHLAR_API ashlar_status ashlar_empty_cache(ashlar_allocator* allocator);

/* Gives memory back where it can: not 0 where it did. It may use the allocator. */
typedef int (*ashlar_free_memory)(void* context);
/* Called when nothing in the cache fits, before the device is asked; what it freed is searched again. For good. */
ASHLAR_API ashlar_status ashlar_add_free_memory_callback(ashlar_allocator* allocator, ashlar_free_memory callback,
                                                         void* context);

/* --- limits ---
 * At most `fraction` of the device's memory, in [0, 1]; at most so many bytes, UINT64_MAX = no such limit. */
ASHLAR_API ashlar_status ashlar_set_memory_fraction(ashlar_allocator* allocator, double fraction);
ASHLAR_API ashlar_status ashlar_set_memory_limit(ashlar_allocator* allocator, uint64_t bytes);

/* --- private pools ---
 * A pool has users; while it has, what is free in it stays there. {0, 0} is the default pool. */
typedef struct ashlar_pool {
  uint64_t first, second;
} ashlar_pool;
/* Whether requests of a stream go to the pool; called in the requesting thread. It must not use the allocator. */
typedef int (*ashlar_stream_filter)(void* context, ashlar_stream stream);
/* Ends the use of a filter's context; called without a lock, so that it may use the allocator. */
typedef void (*ashlar_release_context)(void* context);
enum {
  ASHLAR_ROUTE_PLAIN = 0,
  ASHLAR_ROUTE_CAPTURE = 1 /* a graph is being captured: nothing may wait, and nothing is returned */
};

/* A pool under an id that none had before, with one user. */
ASHLAR_API ashlar_status ashlar_create_pool(ashlar_allocator* allocator, ashlar_pool* out);
/* What PyTorch's MemPool offers; not 0: yes. Its free memory serves others before they are out of memory; its blocks
 * are never split. The pool is made on first use, with one user. */
ASHLAR_API ashlar_status ashlar_configure_pool(ashlar_allocator* allocator, ashlar_pool pool, int use_on_oom,
                                               int no_split);
/* The device's memory of a pool that takes its own from elsewhere. Both are called under the allocator's lock, in the
 * thread that asks: they must not use the allocator. NULL: there is none. */
typedef void* (*ashlar_allocate_segment)(void* context, size_t bytes);
typedef void (*ashlar_free_segment)(void* context, void* memory);
/* The pool's segments come from these functions from now on; it is made on first use, with one user. They are never
 * expandable. `release` is called when the pool has ended and all its memory has gone back, or at once where the call
 * fails; under the same rule; NULL: nothing to do. ASHLAR_INVALID_ARGUMENT: a function is
 * NULL, or it is the default pool; ASHLAR_FAILED_PRECONDITION: it has memory already, or a tag. */
ASHLAR_API ashlar_status ashlar_set_pool_memory(ashlar_allocator* allocator, ashlar_pool pool,
                                                ashlar_allocate_segment allocate, ashlar_free_segment free_segment,
                                                void* context, ashlar_release_context release);
/* One user more, and one less. A pool of the caller's id is made on first use. */
ASHLAR_API ashlar_status ashlar_retain_pool(ashlar_allocator* allocator, ashlar_pool pool);
ASHLAR_API ashlar_status ashlar_release_pool(ashlar_allocator* allocator, ashlar_pool pool);
ASHLAR_API uint64_t ashlar_pool_users(const ashlar_allocator* allocator, ashlar_pool pool);
/* Requests for the default pool go to this one from now on, where `filter` accepts their stream (NULL: all streams); of
 * several routes the youngest that accepts. The pool has one user more, whom ashlar_release_pool ends. `release` is
 * called when the route has ended, or at once where the call fails; NULL: nothing to do.
 * ASHLAR_FAILED_PRECONDITION: the pool has a route already. */
ASHLAR_API ashlar_status ashlar_begin_pool(ashlar_allocator* allocator, ashlar_pool pool, int32_t route,
                                           ashlar_stream_filter filter, void* context, ashlar_release_context release);
/* ASHLAR_FAILED_PRECONDITION: it has no route. */
ASHLAR_API ashlar_status ashlar_end_pool(ashlar_allocator* allocator, ashlar_pool pool);
/* A graph is captured from now on through the pool's ASHLAR_ROUTE_PLAIN, which becomes ASHLAR_ROUTE_CAPTURE; or no
 * more, and the route is plain again. ASHLAR_FAILED_PRECONDITION: the pool has no such route;
 * ASHLAR_INVALID_ARGUMENT: it has a tag, and what is free in it may go back to the device. */
ASHLAR_API ashlar_status ashlar_begin_capture(ashlar_allocator* allocator, ashlar_pool pool);
ASHLAR_API ashlar_status ashlar_end_capture(ashlar_allocator* allocator, ashlar_pool pool);
/* Returns what is whole-free in the pool. ASHLAR_FAILED_PRECONDITION while it has users. */
ASHLAR_API ashlar_status ashlar_empty_pool(ashlar_allocator* allocator, ashlar_pool pool);
/* As ashlar_allocate, from this pool. */
ASHLAR_API ashlar_status ashlar_allocate_in_pool(ashlar_allocator* allocator, ashlar_pool pool, size_t bytes,
                                                 ashlar_stream stream, void** out);

/* --- sleep (docs/library/sleep.md) ---
 * Pools whose pages go back to the device for a while: their blocks and addresses stay, and what the blocks hold is
 * kept elsewhere. Only memory of expandable segments can sleep: that of tagged pools, and all of it under
 * expandable_segments:True or policy:ashlar. */
/* A name of the pool, which is made on first use with one user; several may have one name. Its new memory is of
 * expandable segments from here on, whatever the settings, where the device has virtual memory management. What is free
 * in it goes back to the device as from a pool without users. ASHLAR_FAILED_PRECONDITION: a graph is being captured in
 * it. */
ASHLAR_API ashlar_status ashlar_tag_pool(ashlar_allocator* allocator, ashlar_pool pool, const char* tag);
enum {
  ASHLAR_KEEP_HOST = 0,    /* contents are copied to memory of the host, and beyond host_limit_bytes to a file */
  ASHLAR_KEEP_NOTHING = 1, /* contents are lost */
  ASHLAR_KEEP_FILE = 2     /* contents are copied to a file */
};
typedef void (*ashlar_sleep_progress)(void* context, uint64_t copied_bytes, uint64_t all_bytes);
typedef struct ashlar_sleep_options {
  size_t struct_size; /* sizeof(ashlar_sleep_options) */
  /* Pools by their tags and by their ids; neither: all. */
  const char* const* tags;
  size_t tag_count;
  const ashlar_pool* pools;
  size_t pool_count;
  int32_t keep;              /* ASHLAR_KEEP_...; this and the next not of ashlar_wake */
  uint64_t host_limit_bytes; /* of all kept in memory of the host; UINT64_MAX: three quarters of what it can give */
  const char* folder;        /* of the file, which has no name and goes with the process; NULL: TMPDIR, else /tmp */
  /* Told after each piece of at most 64 MiB, of ashlar_wake too; NULL: nobody is. It must not use the allocator. */
  ashlar_sleep_progress progress;
  void* context;
} ashlar_sleep_options;
typedef struct ashlar_sleep_report {
  size_t struct_size;      /* sizeof(ashlar_sleep_report) */
  uint64_t returned_bytes; /* to the device, with what was cached */
  uint64_t kept_host_bytes, kept_file_bytes;
  uint64_t left_bytes; /* of pools that stay awake: a range of theirs is registered (ashlar_register_range), or another
                          process has a page of a live block (ashlar_share_page) */
} ashlar_sleep_report;
/* Waits for the streams that use the pools. NULL options: all, and no limit; NULL report: not wanted. Until ashlar_wake
 * the memory must not be touched; ashlar_free is allowed, ashlar_allocate and ashlar_record_stream are
 * ASHLAR_FAILED_PRECONDITION there. ASHLAR_FAILED_PRECONDITION: a graph is being captured, or a pool has memory that
 * cannot sleep; nothing sleeps then. */
ASHLAR_API ashlar_status ashlar_sleep(ashlar_allocator* allocator, const ashlar_sleep_options* options,
                                      ashlar_sleep_report* report);
/* The same bytes at the same addresses. NULL: all that sleep. ASHLAR_OUT_OF_MEMORY: none of them wakes, and what is
 * kept stays kept. */
ASHLAR_API ashlar_status ashlar_wake(ashlar_allocator* allocator, const ashlar_sleep_options* pools);
/* 1 where the address lies in a pool that sleeps, else 0. */
ASHLAR_API int ashlar_is_asleep(const ashlar_allocator* allocator, const void* address);
/* Whose the device's memory in use is, the largest part first: pools that are awake, and what is outside this
 * allocator. `visit` may use the allocator. */
typedef void (*ashlar_visit_held)(void* context, const char* owner, uint64_t bytes);
ASHLAR_API ashlar_status ashlar_visit_held_parts(const ashlar_allocator* allocator, ashlar_visit_held visit,
                                                 void* context);

/* --- ranges that somebody else uses as they are: a communication library, a network card, another process --- */
/* Until ashlar_unregister_range nothing of the range is given back to the device, and its pool does not sleep. Ranges
 * may overlap. One line on stderr, once, where it lies in an expandable segment, which some network cards reach slowly.
 * ASHLAR_INVALID_ARGUMENT: it does not lie in one segment; ASHLAR_FAILED_PRECONDITION: its pool sleeps. */
ASHLAR_API ashlar_status ashlar_register_range(ashlar_allocator* allocator, const void* address, size_t bytes);
/* The youngest that begins there. ASHLAR_INVALID_ARGUMENT: none does. */
ASHLAR_API ashlar_status ashlar_unregister_range(ashlar_allocator* allocator, const void* address);

/* --- what it holds and did --- */
typedef struct ashlar_statistics {
  size_t struct_size;                             /* sizeof(ashlar_statistics) */
  uint64_t allocated_bytes, peak_allocated_bytes; /* blocks that the program holds */
  uint64_t requested_bytes, peak_requested_bytes; /* what it asked for */
  uint64_t active_bytes, peak_active_bytes;       /* and blocks that wait for other streams */
  uint64_t reserved_bytes, peak_reserved_bytes;   /* memory that the device gave */
  uint64_t allocations, frees;                    /* requests served, blocks freed */
  uint64_t device_allocations, device_frees;      /* calls to the device that gave or took memory */
  uint64_t retries, out_of_memory_errors;
  uint64_t total_bytes;  /* of the device */
  uint64_t stream_waits; /* inserted by borrow_across_streams */
} ashlar_statistics;
ASHLAR_API ashlar_status ashlar_get_statistics(const ashlar_allocator* allocator, ashlar_statistics* out);
/* Of one private pool, or of one that ended: all of it, what small blocks are cut from, and the rest. */
typedef struct ashlar_pool_statistics {
  size_t struct_size; /* of what the library has filled */
  ashlar_pool pool;
  uint64_t reserved_bytes[3], peak_reserved_bytes[3]; /* memory that the device gave */
  uint64_t obtained_bytes[3], returned_bytes[3];      /* the sums of it */
} ashlar_pool_statistics;
typedef void (*ashlar_visit_pool)(void* context, const ashlar_pool_statistics* pool);
/* By the ids of the pools. `visit` may use the allocator. */
ASHLAR_API ashlar_status ashlar_visit_pools(const ashlar_allocator* allocator, ashlar_visit_pool visit, void* context);
/* Every peak is the current value again. */
ASHLAR_API ashlar_status ashlar_reset_peaks(ashlar_allocator* allocator);
/* The values of torch.cuda.memory_stats, by its names and in its order. */
typedef void (*ashlar_visit_statistic)(void* context, const char* name, int64_t value);
ASHLAR_API ashlar_status ashlar_torch_statistics(const ashlar_allocator* allocator, ashlar_visit_statistic visit,
                                                 void* context);
enum {
  ASHLAR_BLOCK_FREE = 0,
  ASHLAR_BLOCK_LIVE = 1,
  ASHLAR_BLOCK_PENDING = 2 /* freed, and still waits for other streams */
};
/* This struct and the next do not grow. */
typedef struct ashlar_segment_block {
  void* address;
  uint64_t size_bytes;
  uint64_t requested_bytes; /* 0 for a free block */
  int32_t state;            /* ASHLAR_BLOCK_... */
} ashlar_segment_block;
typedef struct ashlar_segment {
  void* address;
  uint64_t size_bytes;
  ashlar_stream stream;
  ashlar_pool pool;
  int32_t is_small_pool, is_expandable;
  const ashlar_segment_block* blocks; /* they tile the segment, in the order of addresses */
  size_t block_count;
} ashlar_segment;
typedef void (*ashlar_visit_segment)(void* context, const ashlar_segment* segment);
/* The segments of one moment, by address; of an expandable one each run of pages without a gap. `visit` may use the
 * allocator; what it is given is valid during its call. */
ASHLAR_API ashlar_status ashlar_visit_segments(const ashlar_allocator* allocator, ashlar_visit_segment visit,
                                               void* context);

enum {
  ASHLAR_EVENT_ALLOC = 0,
  ASHLAR_EVENT_FREE_REQUESTED = 1, /* by the program */
  ASHLAR_EVENT_FREE_COMPLETED = 2, /* the block is free: at once, or when other streams are done with it */
  ASHLAR_EVENT_SEGMENT_ALLOC = 3,  /* the device gave memory, or took it back */
  ASHLAR_EVENT_SEGMENT_FREE = 4,
  ASHLAR_EVENT_SEGMENT_MAP = 5, /* the same of pages of an expandable segment */
  ASHLAR_EVENT_SEGMENT_UNMAP = 6,
  ASHLAR_EVENT_OUT_OF_MEMORY = 7,
  ASHLAR_EVENT_PAGES_SLEPT = 8, /* pages of a pool that falls asleep went back to the device; the addresses stay */
  ASHLAR_EVENT_PAGES_WOKEN = 9  /* there are pages under these addresses again */
};
typedef struct ashlar_event {
  size_t struct_size;  /* of what the library has filled */
  int32_t kind;        /* ASHLAR_EVENT_... */
  uint64_t address;    /* ASHLAR_EVENT_OUT_OF_MEMORY: bytes that the device has free */
  uint64_t size_bytes; /* of a block what was asked for; ASHLAR_EVENT_OUT_OF_MEMORY: the rounded request */
  ashlar_stream stream;
  ashlar_pool pool;
} ashlar_event;
/* Called in the thread that caused the event, under the allocator's lock: it must not use the allocator, nor wait for a
 * thread that does. */
typedef void (*ashlar_observer)(void* context, const ashlar_event* event);
/* Tells `observer` of every event from now on, beside a recording. NULL ends it: when this returns nobody is told any
 * more. All threads share one lock meanwhile. */
ASHLAR_API ashlar_status ashlar_observe(ashlar_allocator* allocator, ashlar_observer observer, void* context);

/* The settings as they were given when it was opened. Valid while the allocator is. */
ASHLAR_API const char* ashlar_conf(const ashlar_allocator* allocator);
/* From now on these settings, as if the allocator had been made with this text (docs/library/settings.md has which may
 * change). ASHLAR_INVALID_ARGUMENT: a bad key or value, or one that cannot change; nothing has changed then. */
ASHLAR_API ashlar_status ashlar_change_settings(ashlar_allocator* allocator, const char* conf);
/* Writes the state, or everything from now on, into a file for `ashlar explain` and `ashlar convert`. `path` may have
 * %p for the process's number and %h for the host. One recording at a time; it ends with ashlar_stop_recording, with
 * ashlar_close, or with the process. An existing file is replaced. */
ASHLAR_API ashlar_status ashlar_dump_snapshot(const ashlar_allocator* allocator, const char* path);
ASHLAR_API ashlar_status ashlar_start_recording(ashlar_allocator* allocator, const char* path);
ASHLAR_API ashlar_status ashlar_stop_recording(ashlar_allocator* allocator);
/* Keeps the last events in so many bytes of memory, and writes them as a file as often as asked. A ring ends as a
 * recording does, and gives way to one that is started. ASHLAR_FAILED_PRECONDITION: there is a recording or a ring; no
 * ring is there to be written. */
ASHLAR_API ashlar_status ashlar_start_ring(ashlar_allocator* allocator, uint64_t bytes);
ASHLAR_API ashlar_status ashlar_write_ring(ashlar_allocator* allocator, const char* path);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ASHLAR_H_
