// What every program that `Scripts/bench messages` compares has in common: a memory that all of them map, the messages,
// and the two tasks of a publisher. Each is compiled with one back end (floor.c, brokers.c).
//
// The memory is a file of 64-bit words. It carries no messages: only how far everybody is, so that the publisher of
// every system stops at the same distance from the slowest subscriber.
//   word 8 + 8 i: subscriber i; +0 it hears (1: ready to hear, 2: has heard), +1 different messages of the running
//   task that came, +2 CLOCK_MONOTONIC in ns of the last of them, +3 how many came again. What was lost is what was
//   sent less +1. Order is not looked at: a node's writer calls `send` from several tasks at once.
#ifndef PARLEY_BENCH_H
#define PARLEY_BENCH_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_BYTES = 256, SUBSCRIBERS_MAX = 60, WORDS = 8 + 8 * SUBSCRIBERS_MAX, LATENCIES_MAX = 1 << 20 };
enum { HEARS = 0, COUNT = 1, LAST = 2, AGAIN = 3 };
#define STALLED_NS 10000000000ull

static _Atomic uint64_t *words;

static _Atomic uint64_t *of_subscriber(int subscriber, int what) { return &words[8 + 8 * subscriber + what]; }

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void wait_until(uint64_t instant) {
  struct timespec time = {(time_t)(instant / 1000000000), (long)(instant % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
  }
}

static void die(const char *what) {
  fprintf(stderr, "bench: %s: %s\n", what, errno != 0 ? strerror(errno) : "failed");
  exit(1);
}

static void map_words(const char *path) {
  int file = open(path, O_RDWR);
  if (file < 0) die(path);
  words = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (words == MAP_FAILED) die("mmap");
}

// A text says which task it belongs to ('w' warming up, 'p' paced, 's' saturated, 'e' the end), its number from 1 on,
// and when it was due (CLOCK_MONOTONIC, ns), and is filled up to 256 bytes.
static void write_text(char *text, char task, uint64_t number, uint64_t due) {
  int count = snprintf(text, TEXT_BYTES + 1, "%c %llu %llu ", task, (unsigned long long)number,
                       (unsigned long long)due);
  memset(text + count, 'x', (size_t)(TEXT_BYTES - count));
}

// MARK: A subscriber

static uint64_t latencies[LATENCIES_MAX];
static int latency_count;

static uint64_t *seen;
static size_t seen_words;

// 0 when the number came before in this task.
static int is_first(uint64_t number) {
  size_t word = (size_t)(number / 64);
  uint64_t bit = 1ull << (number % 64);
  if (word >= seen_words) {
    size_t more = word + 1024;
    seen = realloc(seen, more * 8);
    if (seen == NULL) die("memory");
    memset(seen + seen_words, 0, (more - seen_words) * 8);
    seen_words = more;
  }
  if (seen[word] & bit) return 0;
  seen[word] |= bit;
  return 1;
}

// Returns 1 at the end.
static int heard(int subscriber, const char *text, size_t count) {
  static char task;
  char copy[TEXT_BYTES + 1];
  char *rest;
  uint64_t number, due, now = now_ns();
  if (count != TEXT_BYTES) die("a message of another size");
  memcpy(copy, text, TEXT_BYTES);
  copy[TEXT_BYTES] = 0;
  number = strtoull(copy + 2, &rest, 10);
  due = strtoull(rest, NULL, 10);
  if (copy[0] != task) {
    task = copy[0];
    if (seen != NULL) memset(seen, 0, seen_words * 8);
  }
  if (task == 'w') atomic_store(of_subscriber(subscriber, HEARS), 2);
  if (task == 'p' || task == 's') {
    if (!is_first(number)) {
      atomic_fetch_add(of_subscriber(subscriber, AGAIN), 1);
      return 0;
    }
    if (task == 'p' && latency_count < LATENCIES_MAX) latencies[latency_count++] = now - due;
    atomic_store(of_subscriber(subscriber, LAST), now);
    atomic_fetch_add(of_subscriber(subscriber, COUNT), 1);
  }
  return task == 'e';
}

static void write_latencies(const char *path) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(latencies, 8, (size_t)latency_count, file) != (size_t)latency_count) die(path);
  fclose(file);
}

// MARK: A publisher

// Publishes these texts, in order; returns once they are on their way (the floor: and stored).
static void publish(char (*texts)[TEXT_BYTES + 1], int count);
static void flush_published(void);
// How many `publish` takes at once.
static int batch_max;

static int subscriber_count;

static uint64_t slowest(int what) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < subscriber_count; i++) {
    uint64_t value = atomic_load(of_subscriber(i, what));
    if (value < least) least = value;
  }
  return least;
}

static void begin_task(void) {
  for (int i = 0; i < subscriber_count; i++)
    for (int what = COUNT; what <= AGAIN; what++) atomic_store(of_subscriber(i, what), 0);
}

// Until all have everything, or nobody has got on for ten seconds.
static void await_all(uint64_t count) {
  uint64_t least = 0, since = now_ns();
  flush_published();
  while (least < count && now_ns() - since < STALLED_NS) {
    uint64_t now = slowest(COUNT);
    if (now != least) since = now_ns();
    least = now;
    if (least < count) wait_until(now_ns() + 200000);
  }
}

static void warm_up(void) {
  char text[1][TEXT_BYTES + 1];
  uint64_t since = now_ns(), number = 0;
  while (slowest(HEARS) < 1 && now_ns() - since < STALLED_NS) wait_until(now_ns() + 1000000);
  for (int more = 50; more > 0 && now_ns() - since < 2 * STALLED_NS;) {
    if (slowest(HEARS) >= 2) more--;
    write_text(text[0], 'w', ++number, now_ns());
    publish(text, 1);
    flush_published();
    wait_until(now_ns() + 5000000);
  }
  if (slowest(HEARS) < 2) die("not every subscriber hears");
}

static char texts[256][TEXT_BYTES + 1];

// COUNT messages, RATE of them a second. Each is stamped with when it was due: a writer that is held up and then writes
// late does not look fast. What became due meanwhile goes together, as in a node.
static void pace(uint64_t count, uint64_t rate) {
  uint64_t start = now_ns(), number = 1;
  begin_task();
  while (number <= count) {
    int ready = 0;
    wait_until(start + number * 1000000000 / rate);
    while (number <= count && ready < batch_max && start + number * 1000000000 / rate <= now_ns()) {
      write_text(texts[ready++], 'p', number, start + number * 1000000000 / rate);
      number++;
    }
    publish(texts, ready);
  }
  await_all(count);
  printf("{\"sent\": %llu}\n", (unsigned long long)count);
}

// As fast as the subscribers follow: never more than WINDOW messages ahead of the slowest.
static void saturate(uint64_t milliseconds, uint64_t window) {
  uint64_t start, sent = 0, last = 0;
  begin_task();
  start = now_ns();
  while (now_ns() - start < milliseconds * 1000000) {
    uint64_t ahead = sent - slowest(COUNT);
    int count = 0;
    if (ahead >= window) {
      wait_until(now_ns() + 50000);
      continue;
    }
    while (count < batch_max && count < 256 && ahead + (uint64_t)count < window)
      write_text(texts[count++], 's', ++sent, now_ns());
    publish(texts, count);
  }
  await_all(sent);
  for (int i = 0; i < subscriber_count; i++) {
    uint64_t at = atomic_load(of_subscriber(i, LAST));
    if (at > last) last = at;
  }
  if (last < start) last = start;
  printf("{\"sent\": %llu, \"seconds\": %.6f}\n", (unsigned long long)sent, (double)(last - start) / 1e9);
}

// Orders come on the standard input, one a line; each is answered by one line.
static void obey(void) {
  char line[80];
  unsigned long long a, b;
  setvbuf(stdout, NULL, _IOLBF, 0);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strncmp(line, "warm", 4) == 0) {
      warm_up();
      printf("{}\n");
    } else if (sscanf(line, "pace %llu %llu", &a, &b) == 2) {
      pace(a, b);
    } else if (sscanf(line, "saturate %llu %llu", &a, &b) == 2) {
      saturate(a, b);
    } else if (strncmp(line, "end", 3) == 0) {
      char text[1][TEXT_BYTES + 1];
      write_text(text[0], 'e', 1, now_ns());
      publish(text, 1);
      flush_published();
      printf("{}\n");
      return;
    }
  }
}

#endif
