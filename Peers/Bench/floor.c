// The floor under `Scripts/bench messages`: the same calls of libsodium (hash, sign, seal; open, hash, verify), the
// same datagrams on the loopback interface and the same kind of SQLite commits as a node's, one thread a process, and
// nothing else: no lost datagram is asked for again, nobody acknowledges, nothing is checked that the node checks
// besides. A lower bound, which no node can reach: the writer puts up to 256 messages (several entries) in a commit,
// where a node's log has one entry in flight; and what a node stores beside entries (members, who has what, the search
// index) is not stored.
//   floor sub WORDS INDEX LATENCIES FOLDER
//   floor pub WORDS SUBSCRIBERS FOLDER
#define _GNU_SOURCE
#include "bench.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sqlite3.h>
#include <sys/socket.h>

// Sizes are the protocol's, see Vocabulary/Limit and Wire/Objects/Entry.
enum { DATAGRAM_BYTES = 1232, HEADER_BYTES = 44, NONCE_AT = 20, TAG_BYTES = 16, ENTRY_BYTES = 31600 };
enum { FRAME_BYTES = 3, FRAGMENT_BYTES = 10, PART_BYTES = DATAGRAM_BYTES - HEADER_BYTES - TAG_BYTES - 13 };
enum { AUTHOR_BYTES = 32 + 8, COUNTS_BYTES = 8 + 8 + 8 + 1 + 2, ITEM_BYTES = 1 + 32, LENGTH_BYTES = 2 };
enum { MESSAGES_MAX = 62, PORT = 45900, DATAGRAMS = 64, BATCH_BYTES = 1 << 20, RECEIVE_BUFFER_BYTES = 4 << 20 };

static const char context[] = "parley/1/entry";
static unsigned char public_key[32], secret_key[64], channel_key[32], channel_id[32];
static uint64_t instance = 0x0123456789abcdef;

// The schema's JSON around a text, as long as a node makes it.
static const char json_head[] =
    "{\"sender\":{\"display_name\":\"Bench\",\"sender_id\":\"abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrst\"},"
    "\"message_id\":\"abcdefghijklmnopqrstuvwxyz\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"type\":\"text\","
    "\"body\":\"";
static const char json_tail[] = "\"}";
enum { BODY_BYTES = sizeof json_head - 1 + TEXT_BYTES + sizeof json_tail - 1 };

static void make_keys(void) {
  unsigned char seed[32] = "the floor's keys are no secret..";
  if (sodium_init() < 0) die("libsodium");
  crypto_sign_seed_keypair(public_key, secret_key, seed);
  crypto_generichash(channel_key, 32, seed, 32, NULL, 0);
  crypto_generichash(channel_id, 32, channel_key, 32, NULL, 0);
}

// MARK: The store, with the tables and indices of Store/Schema that an entry touches; without those for search

static sqlite3 *database;
static sqlite3_stmt *begin, *insert, *update_log, *update_sequence, *commit;
static uint64_t cursor, age;

static void run(const char *sql) {
  char *reason = NULL;
  if (sqlite3_exec(database, sql, NULL, NULL, &reason) != SQLITE_OK) {
    fprintf(stderr, "bench: %s: %s\n", sql, reason);
    exit(1);
  }
}

static sqlite3_stmt *prepared(const char *sql) {
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK) {
    fprintf(stderr, "bench: %s: %s\n", sql, sqlite3_errmsg(database));
    exit(1);
  }
  return statement;
}

static void step(sqlite3_stmt *statement) {
  int code = sqlite3_step(statement);
  if (code != SQLITE_DONE && code != SQLITE_ROW) {
    fprintf(stderr, "bench: %s\n", sqlite3_errmsg(database));
    exit(1);
  }
  sqlite3_reset(statement);
}

static void open_store(const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/store.sqlite", folder);
  if (sqlite3_open(path, &database) != SQLITE_OK) die(path);
  run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
      "PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 16777216;"
      "CREATE TABLE sequence (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL,"
      "  age INTEGER NOT NULL DEFAULT -1, wall INTEGER NOT NULL DEFAULT -1) STRICT;"
      "INSERT INTO sequence VALUES (1, 0, -1, -1);"
      "CREATE TABLE channels (id INTEGER PRIMARY KEY,"
      "  channel BLOB NOT NULL UNIQUE CHECK (length(channel) = 32)) STRICT;"
      "INSERT INTO channels VALUES (1, zeroblob(32));"
      "CREATE TABLE logs (id INTEGER PRIMARY KEY,"
      "  channel INTEGER NOT NULL REFERENCES channels (id) ON DELETE CASCADE,"
      "  author BLOB NOT NULL CHECK (length(author) = 32), instance BLOB NOT NULL CHECK (length(instance) = 8),"
      "  contiguous INTEGER NOT NULL, beyond INTEGER NOT NULL, lamport_max INTEGER NOT NULL,"
      "  last_hidden INTEGER NOT NULL, floor INTEGER NOT NULL DEFAULT 0,"
      "  UNIQUE (channel, author, instance)) STRICT;"
      "INSERT INTO logs VALUES (1, 1, zeroblob(32), zeroblob(8), 0, 0, 0, 0, 0);"
      "CREATE TABLE entries (cursor INTEGER PRIMARY KEY, log INTEGER NOT NULL REFERENCES logs (id) ON DELETE CASCADE,"
      "  number INTEGER NOT NULL CHECK (number > 0), lamport INTEGER NOT NULL, hidden INTEGER NOT NULL,"
      "  stored_at INTEGER NOT NULL,"
      "  channel INTEGER NOT NULL, author BLOB NOT NULL, instance BLOB NOT NULL, bytes BLOB NOT NULL) STRICT;"
      "CREATE UNIQUE INDEX entries_by_number ON entries (log, number);"
      "CREATE INDEX entries_by_order ON entries (channel, lamport, author, instance, number, hidden);"
      "CREATE INDEX entries_by_channel ON entries (channel);");
  begin = prepared("BEGIN IMMEDIATE");
  insert = prepared("INSERT INTO entries VALUES (?, 1, ?, ?, 0, ?, 1, ?, ?, ?) ON CONFLICT (log, number) DO NOTHING");
  update_log = prepared(
      "UPDATE logs SET floor = 0, contiguous = ?, beyond = 0, lamport_max = ?, last_hidden = 0 WHERE id = 1");
  update_sequence = prepared("UPDATE sequence SET last = ?, age = ?, wall = ?");
  commit = prepared("COMMIT");
}

static void begin_batch(void) {
  age = now_ns() / 1000000;
  step(begin);
}

static void store_entry(const unsigned char *bytes, int count) {
  cursor++;
  sqlite3_bind_int64(insert, 1, (sqlite3_int64)cursor);
  sqlite3_bind_int64(insert, 2, (sqlite3_int64)cursor);
  sqlite3_bind_int64(insert, 3, (sqlite3_int64)cursor);
  sqlite3_bind_int64(insert, 4, (sqlite3_int64)age);
  sqlite3_bind_blob(insert, 5, bytes, 32, SQLITE_STATIC);
  sqlite3_bind_blob(insert, 6, bytes + 32, 8, SQLITE_STATIC);
  sqlite3_bind_blob(insert, 7, bytes, count, SQLITE_STATIC);
  step(insert);
}

static void end_batch(void) {
  sqlite3_bind_int64(update_log, 1, (sqlite3_int64)cursor);
  sqlite3_bind_int64(update_log, 2, (sqlite3_int64)cursor);
  step(update_log);
  sqlite3_bind_int64(update_sequence, 1, (sqlite3_int64)cursor);
  sqlite3_bind_int64(update_sequence, 2, (sqlite3_int64)age);
  sqlite3_bind_int64(update_sequence, 3, (sqlite3_int64)time(NULL) * 1000);
  step(update_sequence);
  step(commit);
}

// MARK: Entries

// What is signed stands behind this, which is not sent.
static unsigned char signed_bytes[sizeof context + 32 + 8 + ENTRY_BYTES];

static int signed_part_bytes(int messages) { return AUTHOR_BYTES + COUNTS_BYTES + messages * ITEM_BYTES; }

static unsigned char *signed_head(void) {
  unsigned char *at = signed_bytes;
  memcpy(at, context, sizeof context);
  memcpy(at + sizeof context, channel_id, 32);
  memcpy(at + sizeof context + 32, &instance, 8);
  return at + sizeof context + 40;
}

static int make_entry(unsigned char *entry, char (*texts)[TEXT_BYTES + 1], int messages, uint64_t number) {
  unsigned char *at = entry + AUTHOR_BYTES, *body = entry + signed_part_bytes(messages) + 64;
  memset(entry, 0, AUTHOR_BYTES + COUNTS_BYTES);
  memcpy(entry, public_key, 32);
  memcpy(entry + 32, &instance, 8);
  memcpy(at, &number, 8);
  memcpy(at + 8, &number, 8);
  at[25] = (unsigned char)messages;
  at += COUNTS_BYTES;
  for (int i = 0; i < messages; i++) {
    body[0] = 0x40 | (BODY_BYTES >> 8);
    body[1] = BODY_BYTES & 0xff;
    body += LENGTH_BYTES;
    memcpy(body, json_head, sizeof json_head - 1);
    memcpy(body + sizeof json_head - 1, texts[i], TEXT_BYTES);
    memcpy(body + sizeof json_head - 1 + TEXT_BYTES, json_tail, sizeof json_tail - 1);
    *at = 3;
    crypto_generichash(at + 1, 32, body, BODY_BYTES, NULL, 0);
    at += ITEM_BYTES;
    body += BODY_BYTES;
  }
  memcpy(signed_head(), entry, (size_t)(at - entry));
  crypto_sign_detached(at, NULL, signed_bytes, sizeof context + 40 + (size_t)(at - entry), secret_key);
  return (int)(body - entry);
}

static int message_count(const unsigned char *entry) { return entry[AUTHOR_BYTES + 25]; }

static void check_entry(const unsigned char *entry) {
  int messages = message_count(entry), count = signed_part_bytes(messages);
  const unsigned char *body = entry + count + 64, *at = entry + AUTHOR_BYTES + COUNTS_BYTES;
  unsigned char hash[32];
  for (int i = 0; i < messages; i++, at += ITEM_BYTES, body += BODY_BYTES) {
    body += LENGTH_BYTES;
    crypto_generichash(hash, 32, body, BODY_BYTES, NULL, 0);
    if (memcmp(hash, at + 1, 32) != 0) die("a body is not the one that was signed");
  }
  memcpy(signed_head(), entry, (size_t)count);
  if (crypto_sign_verify_detached(entry + count, signed_bytes, sizeof context + 40 + (size_t)count, entry) != 0)
    die("a signature is wrong");
}

// MARK: Datagrams

static int net;
static struct sockaddr_in group = {.sin_family = AF_INET};

static void open_socket(int hears) {
  struct ip_mreqn loopback = {.imr_ifindex = (int)if_nametoindex("lo")};
  int on = 1, byte_count = RECEIVE_BUFFER_BYTES;
  group.sin_port = htons(PORT);
  inet_pton(AF_INET, "239.255.80.77", &group.sin_addr);
  loopback.imr_multiaddr = group.sin_addr;
  net = socket(AF_INET, SOCK_DGRAM, 0);
  setsockopt(net, SOL_SOCKET, SO_RCVBUF, &byte_count, sizeof byte_count);
  setsockopt(net, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (hears) {
    if (bind(net, (struct sockaddr *)&group, sizeof group) != 0) die("bind");
    if (setsockopt(net, IPPROTO_IP, IP_ADD_MEMBERSHIP, &loopback, sizeof loopback) != 0) die("join the group");
  }
  if (setsockopt(net, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback) != 0) die("loopback");
}

static void send_frame(const unsigned char *frame, int count) {
  unsigned char datagram[DATAGRAM_BYTES] = {'P', 'L', 1, 0};
  memcpy(datagram + 4, &instance, 8);
  randombytes_buf(datagram + NONCE_AT, 24);
  crypto_aead_xchacha20poly1305_ietf_encrypt(datagram + HEADER_BYTES, NULL, frame, (unsigned long long)count, datagram,
                                             HEADER_BYTES, NULL, datagram + NONCE_AT, channel_key);
  sendto(net, datagram, (size_t)(HEADER_BYTES + count + TAG_BYTES), 0, (struct sockaddr *)&group, sizeof group);
}

static void send_entry(const unsigned char *entry, int count, uint64_t number) {
  unsigned char frame[DATAGRAM_BYTES];
  int parts = (count + PART_BYTES - 1) / PART_BYTES;
  if (count <= PART_BYTES + FRAGMENT_BYTES) parts = 1;
  for (int i = 0; i < parts; i++) {
    int from = i * PART_BYTES, size = i + 1 < parts ? PART_BYTES : count - from, head = FRAME_BYTES;
    frame[0] = parts == 1 ? 3 : 4;
    if (parts > 1) {
      memcpy(frame + FRAME_BYTES, &number, 8);
      frame[FRAME_BYTES + 8] = (unsigned char)i;
      frame[FRAME_BYTES + 9] = (unsigned char)parts;
      head += FRAGMENT_BYTES;
    }
    frame[1] = (unsigned char)(0x40 | ((size + head - FRAME_BYTES) >> 8));
    frame[2] = (unsigned char)(size + head - FRAME_BYTES);
    memcpy(frame + head, entry + from, (size_t)size);
    send_frame(frame, head + size);
  }
}

// MARK: The publisher

static void publish(char (*texts)[TEXT_BYTES + 1], int count) {
  static unsigned char entry[ENTRY_BYTES];
  static uint64_t number;
  begin_batch();
  for (int done = 0; done < count; done += MESSAGES_MAX) {
    int messages = count - done < MESSAGES_MAX ? count - done : MESSAGES_MAX;
    int size = make_entry(entry, texts + done, messages, ++number);
    send_entry(entry, size, number);
    store_entry(entry, size);
  }
  end_batch();
}

static void flush_published(void) {}

// MARK: The subscriber

static unsigned char batch[BATCH_BYTES + ENTRY_BYTES];
static int batch_bytes, entry_bytes;
static int entry_starts[BATCH_BYTES / 100], entry_count;

static void take_datagram(unsigned char *datagram, int count) {
  static int next_part;
  unsigned char frame[DATAGRAM_BYTES];
  const unsigned char *bytes = frame + FRAME_BYTES;
  int size, is_last = 1;
  if (count < HEADER_BYTES + TAG_BYTES + FRAME_BYTES ||
      crypto_aead_xchacha20poly1305_ietf_decrypt(
          frame, NULL, NULL, datagram + HEADER_BYTES, (unsigned long long)(count - HEADER_BYTES), datagram,
          HEADER_BYTES, datagram + NONCE_AT, channel_key) != 0)
    die("a datagram does not open");
  size = count - HEADER_BYTES - TAG_BYTES - FRAME_BYTES;
  if (frame[0] == 4) {
    // On one machine datagrams come in order or not at all.
    if (bytes[8] != next_part) die("a datagram was lost (is net.core.rmem_max 4 MiB?)");
    is_last = bytes[8] + 1 == bytes[9];
    next_part = is_last ? 0 : next_part + 1;
    bytes += FRAGMENT_BYTES;
    size -= FRAGMENT_BYTES;
  }
  memcpy(batch + batch_bytes + entry_bytes, bytes, (size_t)size);
  entry_bytes += size;
  if (!is_last) return;
  check_entry(batch + batch_bytes);
  entry_starts[entry_count++] = batch_bytes;
  batch_bytes += entry_bytes;
  entry_bytes = 0;
}

// Commits what is in hand and then shows it. Returns 1 at the end.
static int end_received_batch(int subscriber) {
  int is_over = 0;
  if (entry_count == 0) return 0;
  entry_starts[entry_count] = batch_bytes;
  begin_batch();
  for (int i = 0; i < entry_count; i++) store_entry(batch + entry_starts[i], entry_starts[i + 1] - entry_starts[i]);
  end_batch();
  for (int i = 0; i < entry_count; i++) {
    const unsigned char *entry = batch + entry_starts[i];
    int messages = message_count(entry);
    const unsigned char *body = entry + signed_part_bytes(messages) + 64 + LENGTH_BYTES;
    for (int k = 0; k < messages; k++, body += LENGTH_BYTES + BODY_BYTES)
      is_over |= heard(subscriber, (const char *)body + sizeof json_head - 1, TEXT_BYTES);
  }
  memmove(batch, batch + batch_bytes, (size_t)entry_bytes);
  batch_bytes = entry_count = 0;
  return is_over;
}

static void subscribe(int subscriber) {
  static unsigned char buffers[DATAGRAMS][2048];
  static struct iovec places[DATAGRAMS];
  static struct mmsghdr messages[DATAGRAMS];
  for (int i = 0; i < DATAGRAMS; i++) {
    places[i] = (struct iovec){buffers[i], sizeof buffers[i]};
    messages[i].msg_hdr = (struct msghdr){.msg_iov = &places[i], .msg_iovlen = 1};
  }
  atomic_store(of_subscriber(subscriber, HEARS), 1);
  for (;;) {
    // What is there now shares one commit.
    int count = recvmmsg(net, messages, DATAGRAMS, entry_count == 0 ? MSG_WAITFORONE : MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) take_datagram(buffers[i], (int)messages[i].msg_len);
    if (count == DATAGRAMS && batch_bytes < BATCH_BYTES / 2) continue;
    if (end_received_batch(subscriber)) return;
  }
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: floor sub WORDS INDEX LATENCIES FOLDER | pub WORDS SUBSCRIBERS FOLDER\n");
    return 64;
  }
  map_words(argv[2]);
  make_keys();
  open_store(argv[argc - 1]);
  open_socket(strcmp(argv[1], "sub") == 0);
  if (strcmp(argv[1], "sub") == 0) {
    subscribe(atoi(argv[3]));
    write_latencies(argv[4]);
    return 0;
  }
  subscriber_count = atoi(argv[3]);
  batch_max = 256;
  obey();
  return 0;
}
