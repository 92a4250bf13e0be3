// Starts a program that reads one file and answers on its standard output, and can do little else: no network, no other
// process, no file opened for writing, nothing read but system folders, bounded memory and time. Between fork and exec
// only calls that are safe after a fork of a program with threads; what needs memory is made before.
#ifndef PARLEY_LINUX_CONFINED_H
#define PARLEY_LINUX_CONFINED_H

#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern void *memmem(const void *bytes, size_t count, const void *wanted, size_t wanted_count);

struct parley_confined {
  const char *path;
  char *const *arguments;    // ends with a null pointer
  char *const *environment;  // likewise
  int input, output, errors;  // become 0, 1 and 2
  int ruleset;                // of Landlock; -1 where the kernel has none
  uint64_t memory_byte_count, processor_seconds;
};

// Where starting failed.
enum parley_stage {
  PARLEY_STAGE_FORK = 1,
  PARLEY_STAGE_DESCRIPTORS,
  PARLEY_STAGE_LIMITS,
  PARLEY_STAGE_CONFINEMENT,
  PARLEY_STAGE_EXECUTION,
};

// --- Landlock (Linux 5.13), by number: older headers lack it. The numbers are the same on every architecture.

struct parley_confined_rules {
  uint64_t files, network, scopes;
};
struct parley_confined_place {
  uint64_t access;
  int32_t folder;
} __attribute__((packed));

enum { PARLEY_LANDLOCK_EXECUTE = 1, PARLEY_LANDLOCK_READ = 1 << 2, PARLEY_LANDLOCK_LIST = 1 << 3 };

// A set of rules that forbids everything Landlock of this version can forbid; -1 with errno when there is none.
static inline int parley_landlock_make(int version) {
  struct parley_confined_rules rules = {0};
  rules.files = (1ull << 13) - 1;                   // version 1: execute, write, read, list, remove, make
  if (version >= 2) rules.files |= 1ull << 13;      // refer
  if (version >= 3) rules.files |= 1ull << 14;      // truncate
  if (version >= 5) rules.files |= 1ull << 15;      // ioctl of devices
  if (version >= 4) rules.network = 3;              // bind and connect of TCP
  if (version >= 6) rules.scopes = 3;               // abstract Unix sockets, signals
  size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  int ruleset = (int)syscall(444, &rules, size, 0u);
  if (ruleset >= 0) fcntl(ruleset, F_SETFD, FD_CLOEXEC);
  return ruleset;
}

// Allows `access` below an open folder, or to an open file.
static inline int parley_landlock_allow(int ruleset, int folder, uint64_t access) {
  struct parley_confined_place rule = {access, folder};
  return (int)syscall(445, ruleset, 1, &rule, 0u);
}

// --- seccomp: what no confined program needs, refused with EPERM. Without Landlock this is what keeps it from writing.

#if defined(__x86_64__)
enum { PARLEY_SECCOMP_ARCH = AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { PARLEY_SECCOMP_ARCH = AUDIT_ARCH_AARCH64 };
#else
enum { PARLEY_SECCOMP_ARCH = 0 };
#endif

enum { PARLEY_FILTER_MAX = 320 };

struct parley_filter {
  struct sock_filter code[PARLEY_FILTER_MAX];
  unsigned short count;
  unsigned short own_process;  // the instruction that compares with the process's own number
};

static inline void parley_filter_add(struct parley_filter *f, uint16_t code, uint8_t yes, uint8_t no, uint32_t k) {
  struct sock_filter line = {code, yes, no, k};
  if (f->count < PARLEY_FILTER_MAX) f->code[f->count++] = line;
}

static inline void parley_filter_load(struct parley_filter *f, uint32_t offset) {
  parley_filter_add(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
}

static inline void parley_filter_refuse(struct parley_filter *f, uint32_t number, uint32_t error) {
  parley_filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number);
  parley_filter_add(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | error);
}

// The low half of an argument: both architectures are little-endian.
static inline uint32_t parley_argument(unsigned index) {
  return (uint32_t)(offsetof(struct seccomp_data, args) + 8 * index);
}

// Refuses the call when the argument has any of the bits, or, with `inverted`, none of them.
static inline void parley_filter_bits(struct parley_filter *f, uint32_t number, unsigned index, uint32_t bits,
                                      int inverted) {
  parley_filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, number);
  parley_filter_load(f, parley_argument(index));
  parley_filter_add(f, BPF_JMP | BPF_JSET | BPF_K, inverted ? 1 : 0, inverted ? 0 : 1, bits);
  parley_filter_add(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM);
  parley_filter_add(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

// Refuses the call unless the argument is this number. Returns where the number stands.
static inline unsigned short parley_filter_only(struct parley_filter *f, uint32_t number, unsigned index,
                                                uint32_t only) {
  parley_filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, number);
  parley_filter_load(f, parley_argument(index));
  unsigned short place = f->count;
  parley_filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, only);
  parley_filter_add(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM);
  parley_filter_add(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
  return place;
}

static inline void parley_filter_make(struct parley_filter *f) {
  static const uint32_t refused[] = {
      // Network, other ways to it, and other processes' memory and attention.
      SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_ptrace, SYS_process_vm_readv,
      SYS_process_vm_writev, SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_setpgid, SYS_setsid,
      SYS_setpriority, 425, 426, 427 /* io_uring */, 424, 434, 438 /* pidfd */, 440 /* process_madvise */,
      // Namespaces, mounts, and the kernel's wider doors.
      SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_bpf, SYS_perf_event_open,
      SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_name_to_handle_at, SYS_open_by_handle_at,
      SYS_personality, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon,
      SYS_swapoff, SYS_acct, SYS_quotactl, SYS_syslog, SYS_shmget, SYS_semget, SYS_msgget, SYS_mq_open, SYS_mq_unlink,
      428, 429, 430, 431, 432, 433, 442 /* the newer mount calls */,
      // Names and facts of files.
      SYS_truncate, SYS_renameat2, SYS_unlinkat, SYS_mkdirat, SYS_linkat, SYS_symlinkat, SYS_mknodat, SYS_fchmod,
      SYS_fchmodat, 452 /* fchmodat2 */, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr,
      SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_renameat,
#if defined(__x86_64__)
      SYS_fork, SYS_vfork, SYS_creat, SYS_rename, SYS_unlink, SYS_mkdir, SYS_rmdir, SYS_link, SYS_symlink, SYS_mknod,
      SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat, SYS_uselib, SYS_ioperm, SYS_iopl,
      SYS_modify_ldt,
#endif
  };
  const uint32_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (020000000u /* O_TMPFILE but for O_DIRECTORY */);
  f->count = 0;
  parley_filter_load(f, offsetof(struct seccomp_data, arch));
  parley_filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, (uint32_t)PARLEY_SECCOMP_ARCH);
  parley_filter_add(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
  parley_filter_load(f, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
  // The other set of numbers of this processor.
  parley_filter_add(f, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000u);
  parley_filter_add(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
#endif
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) parley_filter_refuse(f, refused[i], EPERM);
  // These take their flags in memory, where a filter cannot look; libraries then use the older calls.
  parley_filter_refuse(f, 435 /* clone3 */, ENOSYS);
  parley_filter_refuse(f, 437 /* openat2 */, ENOSYS);
  parley_filter_refuse(f, SYS_ioctl, ENOTTY);
  parley_filter_bits(f, SYS_openat, 2, writing, 0);
#if defined(__x86_64__)
  parley_filter_bits(f, SYS_open, 1, writing, 0);
#endif
  parley_filter_bits(f, SYS_clone, 0, 0x00010000u /* CLONE_THREAD */, 1);
  parley_filter_only(f, SYS_prlimit64, 0, 0);
  f->own_process = parley_filter_only(f, SYS_tgkill, 0, 0);
  parley_filter_add(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

// --- In the child.

static inline int parley_confined_limit(int what, uint64_t most) {
  struct rlimit limit = {most, most};
  return setrlimit(what, &limit);
}

static inline int parley_confined_limits(const struct parley_confined *c) {
  if (parley_confined_limit(RLIMIT_AS, c->memory_byte_count) != 0) return -1;
  // At the lower limit SIGXCPU, which says why; where both are one, the kernel may send SIGKILL instead.
  struct rlimit processor = {c->processor_seconds, c->processor_seconds + 1};
  if (setrlimit(RLIMIT_CPU, &processor) != 0) return -1;
  if (parley_confined_limit(RLIMIT_FSIZE, 0) != 0) return -1;
  if (parley_confined_limit(RLIMIT_NOFILE, 64) != 0) return -1;
  if (parley_confined_limit(RLIMIT_CORE, 0) != 0) return -1;
  setpriority(PRIO_PROCESS, 0, 10);  // what people write goes first
  return 0;
}

// Numbers above 2, so that none of 0, 1 and 2 is overwritten before it is used; all others close on exec.
static inline int parley_confined_descriptors(int *input, int *output, int *errors, int *ruleset, int *report) {
  int *all[] = {input, output, errors, ruleset, report};
  for (int i = 0; i < 5; i++) {
    if (*all[i] < 0) continue;
    *all[i] = fcntl(*all[i], F_DUPFD_CLOEXEC, 8);
    if (*all[i] < 0) return -1;
  }
  if (dup2(*input, 0) < 0 || dup2(*output, 1) < 0 || dup2(*errors, 2) < 0) return -1;
  if (syscall(436, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC, Linux 5.11 */) == 0) return 0;
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  for (rlim_t file = 3; file < limit.rlim_cur && file < (1 << 20); file++) fcntl((int)file, F_SETFD, FD_CLOEXEC);
  return 0;
}

static inline int parley_confined_barriers(struct parley_filter *filter, int ruleset) {
  // CLONE_NEWUSER, CLONE_NEWNET and CLONE_NEWIPC. Not everywhere allowed; the filter knows no sockets anyway.
  int has_own_network = syscall(SYS_unshare, 0x10000000 | 0x40000000 | 0x08000000) == 0;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  int is_in_folders = ruleset >= 0 && syscall(446, ruleset, 0u) == 0;
  if (ruleset >= 0 && !is_in_folders) return -1;
  filter->code[filter->own_process].k = (uint32_t)getpid();
  struct sock_fprog program = {filter->count, filter->code};
  int is_filtered = PARLEY_SECCOMP_ARCH != 0 && filter->count < PARLEY_FILTER_MAX
                    && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
  if (is_filtered || (has_own_network && is_in_folders)) return 0;
  errno = EPERM;
  return -1;
}

static inline void parley_confined_child(const struct parley_confined *c, struct parley_filter *filter, pid_t parent,
                                         const sigset_t *none, int report) {
  int stage = PARLEY_STAGE_DESCRIPTORS;
  int input = c->input, output = c->output, errors = c->errors, ruleset = c->ruleset;
  struct sigaction plain = {0};
  plain.sa_handler = SIG_DFL;
  for (int number = 1; number < 65; number++) sigaction(number, &plain, 0);
  sigprocmask(SIG_SETMASK, none, 0);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(127);
  umask(077);
  if (parley_confined_descriptors(&input, &output, &errors, &ruleset, &report) == 0 && chdir("/") == 0) {
    stage = PARLEY_STAGE_LIMITS;
    if (parley_confined_limits(c) == 0) {
      stage = PARLEY_STAGE_CONFINEMENT;
      if (parley_confined_barriers(filter, ruleset) == 0) {
        stage = PARLEY_STAGE_EXECUTION;
        execve(c->path, c->arguments, c->environment);
      }
    }
  }
  int words[2] = {stage, errno};
  ssize_t written = write(report, words, sizeof words);
  (void)written;
  _exit(127);
}

// The number of the process, which leads a group of its own; or -1 with errno, and where it failed. The thread that
// calls must live for as long as the program: it ends with the thread.
static inline pid_t parley_confined_start(const struct parley_confined *c, int *stage) {
  struct parley_filter filter = {0};
  sigset_t all, before, none;
  int report[2];
  int words[2] = {0, 0};
  parley_filter_make(&filter);
  *stage = PARLEY_STAGE_FORK;
  if (syscall(SYS_pipe2, report, O_CLOEXEC) != 0) return -1;
  sigemptyset(&none);
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  pid_t parent = getpid();
  pid_t child = fork();
  if (child == 0) parley_confined_child(c, &filter, parent, &none, report[1]);
  int error = errno;
  sigprocmask(SIG_SETMASK, &before, 0);
  close(report[1]);
  if (child > 0) {
    ssize_t count;
    do count = read(report[0], words, sizeof words);
    while (count < 0 && errno == EINTR);
    if (count == (ssize_t)sizeof words) {
      while (waitpid(child, 0, 0) < 0 && errno == EINTR) {}
      child = -1;
      error = words[1];
      *stage = words[0];
    }
  }
  close(report[0]);
  errno = error;
  return child;
}

// pipe2(2) with O_CLOEXEC.
static inline int parley_pipe(int ends[2]) { return (int)syscall(SYS_pipe2, ends, O_CLOEXEC); }

// open(2) with O_PATH, which neither reads nor needs permission to.
static inline int parley_open_place(const char *path) {
  return open(path, 010000000 /* O_PATH, the same on all architectures */ | O_CLOEXEC);
}

// pidfd_open(2), Linux 5.3.
static inline int parley_process_descriptor(pid_t process) { return (int)syscall(434, process, 0u); }

#endif
