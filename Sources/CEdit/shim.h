#ifndef PARLEY_CEDIT_H
#define PARLEY_CEDIT_H
#include <dlfcn.h>
#include <histedit.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <wchar.h>

/* libedit is loaded when a chat first edits a line: a node never does. */
struct parley_edit {
  int is_loaded;
  __typeof__(el_init) *el_init;
  __typeof__(el_end) *el_end;
  __typeof__(el_set) *el_set;
  __typeof__(el_get) *el_get;
  __typeof__(el_gets) *el_gets;
  __typeof__(el_line) *el_line;
  __typeof__(el_insertstr) *el_insertstr;
  __typeof__(el_resize) *el_resize;
  __typeof__(history_init) *history_init;
  __typeof__(history_end) *history_end;
  __typeof__(history) *history;
};

static inline void parley_edit_load(struct parley_edit *edit) {
  /* Debian's name, and the one of libedit's own build. */
  void *library = dlopen("libedit.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) library = dlopen("libedit.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) return;
  /* POSIX has dlsym's result convert to a function (dlsym, "Application usage"). */
#define PARLEY_FIND(name) ((edit->name = (__typeof__(edit->name))dlsym(library, #name)) != NULL)
  edit->is_loaded = PARLEY_FIND(el_init) && PARLEY_FIND(el_end) && PARLEY_FIND(el_set) && PARLEY_FIND(el_get)
    && PARLEY_FIND(el_gets) && PARLEY_FIND(el_line) && PARLEY_FIND(el_insertstr) && PARLEY_FIND(el_resize)
    && PARLEY_FIND(history_init) && PARLEY_FIND(history_end) && PARLEY_FIND(history);
#undef PARLEY_FIND
}

static inline const struct parley_edit *parley_edit(void) {
  /* Inside the function: Swift emits no definition for a static variable of a header's top level. */
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static struct parley_edit functions;
  static _Bool is_resolved;
  pthread_mutex_lock(&mutex);
  if (!is_resolved) parley_edit_load(&functions);
  is_resolved = 1;
  pthread_mutex_unlock(&mutex);
  return &functions;
}

/* el_set, el_get and history are variadic, which Swift cannot call: one function for each use. */

typedef char *(*parley_edit_prompt)(EditLine *);
typedef int (*parley_edit_reader)(EditLine *, wchar_t *);
typedef unsigned char (*parley_edit_function)(EditLine *, int);

/* NULL when libedit is not there, or cannot use this terminal. Nothing else here may be called then. */
static inline EditLine *parley_edit_open(
    const char *program, void *context, parley_edit_prompt prompt, parley_edit_reader reader,
    parley_edit_function complete) {
  const struct parley_edit *library = parley_edit();
  if (!library->is_loaded) return NULL;
  EditLine *edit = library->el_init(program, stdin, stdout, stderr);
  if (edit == NULL) return NULL;
  library->el_set(edit, EL_CLIENTDATA, context);
  library->el_set(edit, EL_PROMPT, prompt);
  library->el_set(edit, EL_EDITOR, "emacs");
  library->el_set(edit, EL_SIGNAL, 0);
  library->el_set(edit, EL_GETCFN, reader);
  library->el_set(edit, EL_ADDFN, "parley-complete", "Complete a command", complete);
  library->el_set(edit, EL_BIND, "^I", "parley-complete", NULL);
  library->el_set(edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
  return edit;
}

static inline void *parley_edit_context(EditLine *edit) {
  void *context = NULL;
  parley_edit()->el_get(edit, EL_CLIENTDATA, &context);
  return context;
}

static inline void parley_edit_close(EditLine *edit) { parley_edit()->el_end(edit); }
static inline void parley_edit_redraw(EditLine *edit) { parley_edit()->el_set(edit, EL_REFRESH); }
static inline void parley_edit_resize(EditLine *edit) { parley_edit()->el_resize(edit); }
static inline const LineInfo *parley_edit_line(EditLine *edit) { return parley_edit()->el_line(edit); }
static inline int parley_edit_insert(EditLine *edit, const char *text) {
  return parley_edit()->el_insertstr(edit, text);
}
static inline const char *parley_edit_read(EditLine *edit, int *count) { return parley_edit()->el_gets(edit, count); }

static inline History *parley_edit_history(EditLine *edit, int count_max) {
  const struct parley_edit *library = parley_edit();
  History *lines = library->history_init();
  HistEvent event;
  if (lines == NULL) return NULL;
  library->history(lines, &event, H_SETSIZE, count_max);
  library->history(lines, &event, H_SETUNIQUE, 1);
  library->el_set(edit, EL_HIST, library->history, lines);
  return lines;
}

static inline void parley_edit_remember(History *lines, const char *line) {
  HistEvent event;
  parley_edit()->history(lines, &event, H_ENTER, line);
}

static inline void parley_edit_forget(History *lines) { parley_edit()->history_end(lines); }

#endif
