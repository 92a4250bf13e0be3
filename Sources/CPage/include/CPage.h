#ifndef PARLEY_CPAGE_H
#define PARLEY_CPAGE_H
#include <stddef.h>

/* One file of the page, as it lies in Sources/LocalAPI/Page. */
struct parley_page_file {
  const char *name;
  const char *type;
  const unsigned char *bytes;
  size_t byte_count;
};

/* NULL past the last one. What it points to stays as it is for as long as the program runs. */
const struct parley_page_file *parley_page_file_at(size_t index);

#endif
