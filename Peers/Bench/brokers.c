// A publisher and a subscriber over a broker's own C library, for `Scripts/bench messages --peers`.
//   brokers sub WORDS INDEX LATENCIES PORT QOS
//   brokers pub WORDS SUBSCRIBERS PORT QOS
// Compiled with -DNATS, -DMOSQUITTO or -DZEROMQ. Each with the library's defaults, except where a comment says why.
#include "bench.h"

#include <semaphore.h>
#include <stdbool.h>

static int subscriber;
static int quality;
#if !defined(MOSQUITTO)
static char url[64];
#endif
static sem_t over;

static void hear(const void *text, size_t count) {
  if (heard(subscriber, text, count)) sem_post(&over);
}

#if defined(NATS)
#include <nats/nats.h>

static natsConnection *connection;

static void check(natsStatus status, const char *what) {
  if (status != NATS_OK) {
    fprintf(stderr, "bench: %s: %s\n", what, natsStatus_GetText(status));
    exit(1);
  }
}

static void connect_to(int port, bool at_once) {
  natsOptions *options;
  snprintf(url, sizeof url, "nats://127.0.0.1:%d", port);
  check(natsOptions_Create(&options), "options");
  check(natsOptions_SetURL(options, url), "url");
  // Without it the library waits a millisecond for more to send.
  check(natsOptions_SetSendAsap(options, at_once), "send at once");
  check(natsConnection_Connect(&connection, options), "connect");
}

static void message_arrived(natsConnection *from, natsSubscription *of, natsMsg *message, void *context) {
  (void)from, (void)of, (void)context;
  hear(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
  natsMsg_Destroy(message);
}

static void subscribe(int port) {
  natsSubscription *subscription;
  connect_to(port, true);
  check(natsConnection_Subscribe(&subscription, connection, "bench", message_arrived, NULL), "subscribe");
  // The bound is the publisher's window, for every system alike.
  check(natsSubscription_SetPendingLimits(subscription, -1, -1), "limits");
  check(natsConnection_Flush(connection), "flush");
  atomic_store(of_subscriber(subscriber, HEARS), 1);
  sem_wait(&over);
}

static void prepare(int port) {
  connect_to(port, true);
  batch_max = 64;
}

static void publish(char (*texts)[TEXT_BYTES + 1], int count) {
  for (int i = 0; i < count; i++) check(natsConnection_Publish(connection, "bench", texts[i], TEXT_BYTES), "publish");
}

static void flush_published(void) { check(natsConnection_FlushTimeout(connection, 10000), "flush"); }

#elif defined(MOSQUITTO)
#include <mosquitto.h>

static struct mosquitto *client;

static void check(int status, const char *what) {
  if (status != MOSQ_ERR_SUCCESS) {
    fprintf(stderr, "bench: %s: %s\n", what, mosquitto_strerror(status));
    exit(1);
  }
}

static void message_arrived(struct mosquitto *from, void *context, const struct mosquitto_message *message) {
  (void)from, (void)context;
  hear(message->payload, (size_t)message->payloadlen);
}

static void subscribed(struct mosquitto *from, void *context, int message, int count, const int *granted) {
  (void)from, (void)context, (void)message, (void)count, (void)granted;
  atomic_store(of_subscriber(subscriber, HEARS), 1);
}

static void connect_to(int port) {
  mosquitto_lib_init();
  client = mosquitto_new(NULL, true, NULL);
  if (client == NULL) die("client");
  // As the libraries of NATS and ZeroMQ do by themselves.
  check(mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1), "no delay");
  mosquitto_message_callback_set(client, message_arrived);
  mosquitto_subscribe_callback_set(client, subscribed);
  check(mosquitto_connect(client, "127.0.0.1", port, 60), "connect");
  check(mosquitto_loop_start(client), "loop");
}

static void subscribe(int port) {
  connect_to(port);
  check(mosquitto_subscribe(client, NULL, "bench", quality), "subscribe");
  sem_wait(&over);
  mosquitto_disconnect(client);
}

static void prepare(int port) {
  connect_to(port);
  batch_max = 64;
}

static void publish(char (*texts)[TEXT_BYTES + 1], int count) {
  for (int i = 0; i < count; i++)
    check(mosquitto_publish(client, NULL, "bench", TEXT_BYTES, texts[i], quality, false), "publish");
}

static void flush_published(void) {
  uint64_t since = now_ns();
  while (mosquitto_want_write(client) && now_ns() - since < STALLED_NS) wait_until(now_ns() + 100000);
}

#elif defined(ZEROMQ)
#include <zmq.h>

static void *zmq_connect_to(int port, int type) {
  void *context = zmq_ctx_new(), *socket = zmq_socket(context, type);
  int unbounded = 0;
  if (socket == NULL) die("socket");
  // With the default of 1,000 a fast publisher loses messages; the bound is the publisher's window.
  zmq_setsockopt(socket, ZMQ_SNDHWM, &unbounded, sizeof unbounded);
  zmq_setsockopt(socket, ZMQ_RCVHWM, &unbounded, sizeof unbounded);
  snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
  if ((type == ZMQ_PUB ? zmq_bind(socket, url) : zmq_connect(socket, url)) != 0) die(url);
  return socket;
}

static void *publisher;

static void subscribe(int port) {
  void *socket = zmq_connect_to(port, ZMQ_SUB);
  char text[TEXT_BYTES + 1];
  zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
  atomic_store(of_subscriber(subscriber, HEARS), 1);
  while (sem_trywait(&over) != 0) {
    int count = zmq_recv(socket, text, sizeof text, 0);
    if (count >= 0) hear(text, (size_t)count);
  }
}

static void prepare(int port) {
  publisher = zmq_connect_to(port, ZMQ_PUB);
  batch_max = 64;
}

static void publish(char (*texts)[TEXT_BYTES + 1], int count) {
  for (int i = 0; i < count; i++)
    if (zmq_send(publisher, texts[i], TEXT_BYTES, 0) != TEXT_BYTES) die("publish");
}

static void flush_published(void) {}
#endif

int main(int argc, char **argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: brokers sub WORDS INDEX LATENCIES PORT QOS | pub WORDS SUBSCRIBERS PORT QOS\n");
    return 64;
  }
  map_words(argv[2]);
  sem_init(&over, 0, 0);
  quality = atoi(argv[argc - 1]);
  if (strcmp(argv[1], "sub") == 0) {
    subscriber = atoi(argv[3]);
    subscribe(atoi(argv[argc - 2]));
    write_latencies(argv[4]);
    return 0;
  }
  subscriber_count = atoi(argv[3]);
  prepare(atoi(argv[argc - 2]));
  obey();
#if defined(MOSQUITTO)
  flush_published();
  mosquitto_disconnect(client);
  mosquitto_loop_stop(client, false);
#elif defined(ZEROMQ)
  zmq_close(publisher);
  // The last message must go out before the process does.
  wait_until(now_ns() + 200000000);
#endif
  return 0;
}
