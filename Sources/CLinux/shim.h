// Linux calls that glibc hides behind _GNU_SOURCE or has no wrapper for on the oldest system supported, and which Swift
// cannot call through the variadic syscall(2). Each returns as its call does, with errno set.
#ifndef PARLEY_LINUX_SHIM_H
#define PARLEY_LINUX_SHIM_H

#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
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
static inline int parley_allocate(int file, int64_t offset, int64_t byte_count) {
#if defined(__LP64__)
  return (int)syscall(SYS_fallocate, file, 0, offset, byte_count);
#else
  (void)file;
  (void)offset;
  (void)byte_count;
  errno = EOPNOTSUPP;
  return -1;
#endif
}

// syncfs(2), Linux 2.6.39.
static inline int parley_syncfs(int file) { return (int)syscall(SYS_syncfs, file); }

// Landlock, Linux 5.13: https://docs.kernel.org/userspace-api/landlock.html. The numbers are the same on every
// architecture; declared here because older kernel headers lack them.
struct parley_landlock_ruleset {
  uint64_t handled_access_fs;
};
struct parley_landlock_beneath {
  uint64_t allowed_access;
  int32_t parent_fd;
} __attribute__((packed));

// The version of Landlock, from 1; less where there is none.
static inline int parley_landlock_version(void) { return (int)syscall(444, (void *)0, (size_t)0, 1); }

// From now on this thread can change nothing in the file system but below this folder. Reading is left as it is.
static inline int parley_confine_thread(int folder) {
  int version = parley_landlock_version();
  if (version < 1) return -1;
  // WRITE_FILE, REMOVE_DIR, REMOVE_FILE, and MAKE_CHAR to MAKE_SYM; then REFER (version 2) and TRUNCATE (3).
  uint64_t access = 1 << 1 | 0x1FF0;
  if (version >= 2) access |= 1 << 13;
  if (version >= 3) access |= 1 << 14;
  struct parley_landlock_ruleset rules = {access};
  int ruleset = (int)syscall(444, &rules, sizeof rules, 0);
  if (ruleset < 0) return -1;
  // Regular files and folders only: WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG, REFER, TRUNCATE.
  struct parley_landlock_beneath beneath = {access & (1 << 1 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 3 << 13), folder};
  int result = (int)syscall(445, ruleset, 1, &beneath, 0);
  if (result == 0) result = prctl(38, 1, 0, 0, 0);  // PR_SET_NO_NEW_PRIVS, which the next call asks for
  if (result == 0) result = (int)syscall(446, ruleset, 0);
  close(ruleset);
  return result;
}

#endif
