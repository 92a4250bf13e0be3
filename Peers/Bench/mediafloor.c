// The floor of `Scripts/bench media`: what a file costs that is read, sealed, sent over TCP, opened, hashed and written,
// and nothing else. AES-256-GCM by libsodium in frames of one block of 16 KiB, as a node's; SHA-256 of every block by
// libcrypto, as the leaves of a node's tree. No handshake, no requests, no tree above the leaves, nothing compared,
// nothing reserved or synced: a lower bound.
//
//   mediafloor send PORT FILE THREADS              waits for the connections of one receiver, and ends with it
//   mediafloor receive PORT FILE THREADS BYTES     prints the seconds that it took
//
// Each thread has a connection and a share of the file of its own. On the standard output both say first that they are
// ready, and before they start they wait for a line on the standard input.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Frames that are read, sealed and sent at once: 256 KiB stay in a core's second cache.
enum { BLOCK = 16384, TAG = 16, HEAD = 2, FRAME = HEAD + BLOCK + TAG, BATCH = 16, THREADS_MAX = 64 };

struct share {
  pthread_t thread;
  int file, connection;
  uint64_t start, end;
};

static crypto_aead_aes256gcm_state key;

static void die(const char *what) {
  fprintf(stderr, "mediafloor: %s: %s\n", what, errno != 0 ? strerror(errno) : "failed");
  exit(1);
}

static void make_nonce(unsigned char *nonce, uint64_t counter) {
  memset(nonce, 0, crypto_aead_aes256gcm_NPUBBYTES);
  memcpy(nonce + 4, &counter, sizeof counter);
}

static size_t block_bytes(uint64_t offset, uint64_t end) {
  return end - offset < BLOCK ? (size_t)(end - offset) : BLOCK;
}

static void *send_share(void *argument) {
  struct share *share = argument;
  unsigned char *plain = malloc(BATCH * BLOCK), *frames = malloc(BATCH * FRAME);
  uint64_t offset = share->start;
  if (plain == NULL || frames == NULL) die("memory");
  while (offset < share->end) {
    size_t want = share->end - offset < BATCH * BLOCK ? (size_t)(share->end - offset) : BATCH * BLOCK;
    size_t length = 0;
    if (pread(share->file, plain, want, (off_t)offset) != (ssize_t)want) die("read");
    for (size_t at = 0; at < want; at += BLOCK, offset += BLOCK) {
      unsigned char nonce[crypto_aead_aes256gcm_NPUBBYTES], *frame = frames + length;
      size_t bytes = block_bytes(offset, share->end);
      make_nonce(nonce, offset / BLOCK);
      frame[0] = (unsigned char)((bytes + TAG) >> 8);
      frame[1] = (unsigned char)(bytes + TAG);
      crypto_aead_aes256gcm_encrypt_afternm(frame + HEAD, NULL, plain + at, bytes, NULL, 0, NULL, nonce,
                                            (const crypto_aead_aes256gcm_state *)&key);
      length += HEAD + bytes + TAG;
    }
    for (size_t sent = 0; sent < length;) {
      ssize_t count = write(share->connection, frames + sent, length - sent);
      if (count < 0) die("send");
      sent += (size_t)count;
    }
  }
  free(plain);
  free(frames);
  return NULL;
}

static void *receive_share(void *argument) {
  struct share *share = argument;
  unsigned char *frames = malloc(BATCH * FRAME), *plain = malloc(BATCH * BLOCK), leaf[32];
  const EVP_MD *sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  uint64_t offset = share->start, written = share->start;
  size_t have = 0, opened = 0;
  if (frames == NULL || plain == NULL || sha256 == NULL || context == NULL) die("memory");
  while (offset < share->end) {
    size_t at = 0;
    ssize_t count = read(share->connection, frames + have, BATCH * FRAME - have);
    if (count <= 0) die("receive");
    have += (size_t)count;
    while (offset < share->end) {
      unsigned char nonce[crypto_aead_aes256gcm_NPUBBYTES];
      size_t bytes = block_bytes(offset, share->end);
      if (have - at < HEAD + bytes + TAG) break;
      if (((size_t)frames[at] << 8 | frames[at + 1]) != bytes + TAG) die("frame");
      make_nonce(nonce, offset / BLOCK);
      if (crypto_aead_aes256gcm_decrypt_afternm(plain + opened, NULL, NULL, frames + at + HEAD, bytes + TAG, NULL, 0,
                                                nonce, (const crypto_aead_aes256gcm_state *)&key) != 0)
        die("open");
      EVP_DigestInit_ex2(context, sha256, NULL);
      EVP_DigestUpdate(context, plain + opened, bytes);
      EVP_DigestFinal_ex(context, leaf, NULL);
      at += HEAD + bytes + TAG;
      offset += bytes;
      opened += bytes;
    }
    memmove(frames, frames + at, have - at);
    have -= at;
    if (opened > 0 && pwrite(share->file, plain, opened, (off_t)written) != (ssize_t)opened) die("write");
    written += opened;
    opened = 0;
  }
  EVP_MD_CTX_free(context);
  free(frames);
  free(plain);
  return NULL;
}

static void await_order(void) {
  char line[16];
  printf("ready\n");
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) exit(1);
}

static int new_socket(void) {
  int one = 1, number = socket(AF_INET, SOCK_STREAM, 0);
  if (number < 0) die("socket");
  setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return number;
}

// The connections come in any order: each says first, in a byte, which share it is for.
static void accept_all(struct share *shares, int count, struct sockaddr_in *address) {
  int listener = new_socket();
  if (bind(listener, (struct sockaddr *)address, sizeof *address) != 0 || listen(listener, THREADS_MAX) != 0)
    die("listen");
  await_order();
  for (int i = 0; i < count; i++) {
    unsigned char number;
    int connection = accept(listener, NULL, NULL);
    if (connection < 0 || read(connection, &number, 1) != 1 || number >= count) die("accept");
    shares[number].connection = connection;
  }
}

static void connect_all(struct share *shares, int count, struct sockaddr_in *address) {
  for (int i = 0; i < count; i++) {
    unsigned char number = (unsigned char)i;
    shares[i].connection = new_socket();
    if (connect(shares[i].connection, (struct sockaddr *)address, sizeof *address) != 0) die("connect");
    if (write(shares[i].connection, &number, 1) != 1) die("connect");
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  static struct share shares[THREADS_MAX];
  static const unsigned char key_bytes[crypto_aead_aes256gcm_KEYBYTES] = {1};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int sends = argc == 5 && strcmp(argv[1], "send") == 0;
  int count = argc >= 5 ? atoi(argv[4]) : 0, file;
  uint64_t blocks, byte_count;
  double start;
  struct stat status;
  if ((!sends && !(argc == 6 && strcmp(argv[1], "receive") == 0)) || count < 1 || count > THREADS_MAX) {
    fprintf(stderr, "usage: mediafloor send PORT FILE THREADS | receive PORT FILE THREADS BYTES\n");
    return 64;
  }
  if (sodium_init() < 0 || !crypto_aead_aes256gcm_is_available()) die("AES");
  crypto_aead_aes256gcm_beforenm(&key, key_bytes);
  address.sin_port = htons((uint16_t)atoi(argv[2]));
  file = sends ? open(argv[3], O_RDONLY) : open(argv[3], O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0 || fstat(file, &status) != 0) die(argv[3]);
  byte_count = sends ? (uint64_t)status.st_size : strtoull(argv[5], NULL, 10);
  blocks = (byte_count + BLOCK - 1) / BLOCK;
  for (int i = 0; i < count; i++) {
    shares[i].file = file;
    shares[i].start = blocks * (uint64_t)i / (uint64_t)count * BLOCK;
    shares[i].end = i == count - 1 ? byte_count : blocks * (uint64_t)(i + 1) / (uint64_t)count * BLOCK;
  }
  if (sends) {
    accept_all(shares, count, &address);
  } else {
    await_order();
  }
  start = now();
  if (!sends) connect_all(shares, count, &address);
  for (int i = 0; i < count; i++)
    if (pthread_create(&shares[i].thread, NULL, sends ? send_share : receive_share, &shares[i]) != 0) die("thread");
  for (int i = 0; i < count; i++) pthread_join(shares[i].thread, NULL);
  if (!sends) printf("%.6f\n", now() - start);
  fflush(stdout);
  // What it took is read by whoever started it, before it ends.
  (void)getchar();
  return 0;
}
