#ifndef PARLEY_CCURL_H
#define PARLEY_CCURL_H
#include <curl/curl.h>

/* curl_easy_setopt and curl_easy_getinfo are variadic macros, which Swift cannot call: one function for each type. */
static inline CURLcode parley_curl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode parley_curl_set_text(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode parley_curl_set_headers(CURL *handle, struct curl_slist *headers) {
  return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
}

/* libcurl copies the body. */
static inline CURLcode parley_curl_set_body(CURL *handle, const void *body, long byte_count) {
  CURLcode result = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, byte_count);
  return result != CURLE_OK ? result : curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, body);
}

typedef size_t (*parley_curl_receiver)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode parley_curl_set_receiver(CURL *handle, parley_curl_receiver receiver, void *context) {
  CURLcode result = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, receiver);
  return result != CURLE_OK ? result : curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
}

static inline long parley_curl_status(CURL *handle) {
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

static inline long parley_curl_system_error(CURL *handle) {
  long number = 0;
  curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &number);
  return number;
}

/* The next transfer that ended, or NULL; its outcome in `result`. */
static inline CURL *parley_curl_next_finished(CURLM *multi, CURLcode *result) {
  int left = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(multi, &left)) != NULL) {
    if (message->msg != CURLMSG_DONE) continue;
    *result = message->data.result;
    return message->easy_handle;
  }
  return NULL;
}

#endif
