// Linux calls that glibc hides behind _GNU_SOURCE or has no wrapper for on the oldest system supported, and which Swift
// cannot call through the variadic syscall(2). Each returns as its call does, with errno set.
#ifndef PARLEY_LINUX_SHIM_H
#define PARLEY_LINUX_SHIM_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

extern long syscall(long number, ...);

// struct open_how of openat2(2), Linux 5.6; declared here because older kernel headers lack it.
struct parley_open_how {
  uint64_t flags;
  uint64_t mode;
  uint64_t resolve;
};

// RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH.
enum { PARLEY_RESOLVE_SAFELY = 0x02 | 0x04 | 0x08 };

static inline int parley_openat2(int folder, const char *name, int flags, unsigned mode, unsigned resolve) {
  struct parley_open_how how = {(uint64_t)(unsigned)flags, mode, resolve};
  return (int)syscall(437, folder, name, &how, sizeof how);  // the same number on every architecture
}

// SEEK_DATA of lseek(2), Linux 3.1; O_PATH of open(2), Linux 2.6.39, on every architecture that Swift runs on.
enum { PARLEY_SEEK_DATA = 3, PARLEY_O_PATH = 0x200000 };

// renameat2(2) with RENAME_NOREPLACE, Linux 3.15.
static inline int parley_rename_without_replacing(int folder, const char *from, const char *to) {
  return (int)syscall(SYS_renameat2, folder, from, folder, to, 1);
}

// fallocate(2): allocates and sets the size. Unlike posix_fallocate it never falls back to writing every block.
static inline int parley_allocate(int file, int64_t byte_count) {
#if defined(__LP64__)
  return (int)syscall(SYS_fallocate, file, 0, (int64_t)0, byte_count);
#else
  (void)file;
  (void)byte_count;
  errno = EOPNOTSUPP;
  return -1;
#endif
}

#endif
