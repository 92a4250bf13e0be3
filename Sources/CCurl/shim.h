#ifndef PARLEY_CCURL_H
#define PARLEY_CCURL_H
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* libcurl is loaded when a command first calls a node. Linked in, it would cost each node 3 MB of resident memory: it
   brings two TLS libraries, Kerberos, LDAP and SSH, and the node itself never calls it. */
struct parley_curl {
  int is_loaded;
  __typeof__(curl_easy_init) *easy_init;
  __typeof__(curl_easy_cleanup) *easy_cleanup;
  __typeof__(curl_easy_setopt) *easy_setopt;
  __typeof__(curl_easy_getinfo) *easy_getinfo;
  __typeof__(curl_slist_append) *slist_append;
  __typeof__(curl_slist_free_all) *slist_free_all;
  __typeof__(curl_multi_init) *multi_init;
  __typeof__(curl_multi_cleanup) *multi_cleanup;
  __typeof__(curl_multi_add_handle) *multi_add_handle;
  __typeof__(curl_multi_remove_handle) *multi_remove_handle;
  __typeof__(curl_multi_perform) *multi_perform;
  __typeof__(curl_multi_poll) *multi_poll;
  __typeof__(curl_multi_info_read) *multi_info_read;
};

static inline void parley_curl_load(struct parley_curl *curl) {
  static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
  void *library = NULL;
  for (size_t i = 0; library == NULL && i < sizeof names / sizeof *names; i++)
    library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) return;
  /* POSIX has dlsym's result convert to a function (dlsym, "Application usage"). */
#define PARLEY_FIND(name) ((curl->name = (__typeof__(curl->name))dlsym(library, "curl_" #name)) != NULL)
  curl->is_loaded = PARLEY_FIND(easy_init) && PARLEY_FIND(easy_cleanup) && PARLEY_FIND(easy_setopt)
    && PARLEY_FIND(easy_getinfo) && PARLEY_FIND(slist_append) && PARLEY_FIND(slist_free_all)
    && PARLEY_FIND(multi_init) && PARLEY_FIND(multi_cleanup) && PARLEY_FIND(multi_add_handle)
    && PARLEY_FIND(multi_remove_handle) && PARLEY_FIND(multi_perform) && PARLEY_FIND(multi_poll)
    && PARLEY_FIND(multi_info_read);
#undef PARLEY_FIND
}

static inline const struct parley_curl *parley_curl(void) {
  /* Inside the function: Swift emits no definition for a static variable of a header's top level. */
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static struct parley_curl functions;
  static _Bool is_resolved;
  pthread_mutex_lock(&mutex);
  if (!is_resolved) parley_curl_load(&functions);
  is_resolved = 1;
  pthread_mutex_unlock(&mutex);
  return &functions;
}

/* False when libcurl is not there, or older than 7.66, which has curl_multi_poll. Nothing else here may be called
   then. */
static inline _Bool parley_curl_is_available(void) { return parley_curl()->is_loaded; }

static inline CURL *parley_curl_easy(void) { return parley_curl()->easy_init(); }
static inline void parley_curl_end_easy(CURL *handle) { parley_curl()->easy_cleanup(handle); }
static inline CURLM *parley_curl_multi(void) { return parley_curl()->multi_init(); }
static inline void parley_curl_end_multi(CURLM *multi) { parley_curl()->multi_cleanup(multi); }
static inline void parley_curl_add(CURLM *multi, CURL *handle) { parley_curl()->multi_add_handle(multi, handle); }
static inline void parley_curl_remove(CURLM *multi, CURL *handle) { parley_curl()->multi_remove_handle(multi, handle); }

static inline void parley_curl_advance(CURLM *multi) {
  int running_count = 0;
  parley_curl()->multi_perform(multi, &running_count);
}

static inline void parley_curl_wait(
    CURLM *multi, struct curl_waitfd *others, unsigned int other_count, int milliseconds) {
  parley_curl()->multi_poll(multi, others, other_count, milliseconds, NULL);
}

static inline struct curl_slist *parley_curl_header(struct curl_slist *list, const char *line) {
  return parley_curl()->slist_append(list, line);
}

static inline void parley_curl_end_headers(struct curl_slist *list) { parley_curl()->slist_free_all(list); }

/* curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call: one function for each type. */
static inline CURLcode parley_curl_set_long(CURL *handle, CURLoption option, long value) {
  return parley_curl()->easy_setopt(handle, option, value);
}

static inline CURLcode parley_curl_set_text(CURL *handle, CURLoption option, const char *value) {
  return parley_curl()->easy_setopt(handle, option, value);
}

static inline CURLcode parley_curl_set_headers(CURL *handle, struct curl_slist *headers) {
  return parley_curl()->easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
}

/* libcurl copies the body. */
static inline CURLcode parley_curl_set_body(CURL *handle, const void *body, long byte_count) {
  CURLcode result = parley_curl()->easy_setopt(handle, CURLOPT_POSTFIELDSIZE, byte_count);
  return result != CURLE_OK ? result : parley_curl()->easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, body);
}

typedef size_t (*parley_curl_receiver)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode parley_curl_set_receiver(CURL *handle, parley_curl_receiver receiver, void *context) {
  CURLcode result = parley_curl()->easy_setopt(handle, CURLOPT_WRITEFUNCTION, receiver);
  return result != CURLE_OK ? result : parley_curl()->easy_setopt(handle, CURLOPT_WRITEDATA, context);
}

/* Of each line of the answer's head. */
static inline CURLcode parley_curl_set_head_receiver(CURL *handle, parley_curl_receiver receiver, void *context) {
  CURLcode result = parley_curl()->easy_setopt(handle, CURLOPT_HEADERFUNCTION, receiver);
  return result != CURLE_OK ? result : parley_curl()->easy_setopt(handle, CURLOPT_HEADERDATA, context);
}

/* What the answer says it brings; -1 when it does not. */
static inline long long parley_curl_content_length(CURL *handle) {
  curl_off_t length = -1;
  parley_curl()->easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  return (long long)length;
}

static inline long parley_curl_status(CURL *handle) {
  long status = 0;
  parley_curl()->easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

static inline long parley_curl_system_error(CURL *handle) {
  long number = 0;
  parley_curl()->easy_getinfo(handle, CURLINFO_OS_ERRNO, &number);
  return number;
}

/* NULL when the answer named none. Valid until the next transfer. */
static inline const char *parley_curl_content_type(CURL *handle) {
  const char *type = NULL;
  parley_curl()->easy_getinfo(handle, CURLINFO_CONTENT_TYPE, &type);
  return type;
}

/* The next transfer that ended, or NULL; its outcome in `result`. */
static inline CURL *parley_curl_next_finished(CURLM *multi, CURLcode *result) {
  int left = 0;
  CURLMsg *message;
  while ((message = parley_curl()->multi_info_read(multi, &left)) != NULL) {
    if (message->msg != CURLMSG_DONE) continue;
    *result = message->data.result;
    return message->easy_handle;
  }
  return NULL;
}

#endif
