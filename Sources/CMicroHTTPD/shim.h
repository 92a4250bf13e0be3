#ifndef PARLEY_CMICROHTTPD_H
#define PARLEY_CMICROHTTPD_H
#include <microhttpd.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Paths stay percent-encoded: only after splitting at the slashes may %2F become one. */
static inline size_t parley_mhd_keep_escapes(void *context, struct MHD_Connection *connection, char *text) {
  (void)context;
  (void)connection;
  return strlen(text);
}

/* MHD_start_daemon is variadic, which Swift cannot call. One polling thread serves all connections. */
static inline struct MHD_Daemon *parley_mhd_start(
    int listen_socket, unsigned int connection_count_max, unsigned int timeout_seconds,
    MHD_AccessHandlerCallback handler, MHD_RequestCompletedCallback completed, void *context) {
  return MHD_start_daemon(
      MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler, context,
      MHD_OPTION_LISTEN_SOCKET, listen_socket, MHD_OPTION_CONNECTION_LIMIT, connection_count_max,
      MHD_OPTION_CONNECTION_TIMEOUT, timeout_seconds, MHD_OPTION_NOTIFY_COMPLETED, completed, context,
      MHD_OPTION_UNESCAPE_CALLBACK, parley_mhd_keep_escapes, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

/* MHD_get_connection_info is variadic. -1 when unknown. */
static inline int parley_mhd_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? -1 : info->connect_fd;
}

/* MHD_set_connection_option is variadic. A stream may be silent, or unread, for as long as its client likes. */
static inline void parley_mhd_never_times_out(struct MHD_Connection *connection) {
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
}

/* The user on the other side of a Unix socket (SO_PEERCRED, unix(7)); -1 when unknown. */
static inline long parley_peer_user(int socket) {
  /* struct ucred, which glibc hides behind _GNU_SOURCE; defining that here would give fd_set another shape than the
     one Swift's own module of the C library has. */
  struct { pid_t pid; uid_t uid; gid_t gid; } credentials;
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return -1;
  return (long)credentials.uid;
}

/* Macros with casts, which Swift does not see. */
static inline ssize_t parley_mhd_end_of_stream(void) { return MHD_CONTENT_READER_END_OF_STREAM; }
static inline ssize_t parley_mhd_end_with_error(void) { return MHD_CONTENT_READER_END_WITH_ERROR; }
static inline uint64_t parley_mhd_size_unknown(void) { return MHD_SIZE_UNKNOWN; }

/* Of Linux alone, which Swift's own module of the C library leaves out. */
static inline int parley_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
static inline int parley_open_folder(const char *path) { return open(path, 010000000 /* O_PATH */ | O_DIRECTORY | O_CLOEXEC); }
/* POLLRDHUP of poll(2). */
#define PARLEY_POLL_HANGUP 0x2000

#endif
