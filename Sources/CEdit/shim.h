#ifndef PARLEY_CEDIT_H
#define PARLEY_CEDIT_H
#include <histedit.h>
#include <stdio.h>
#include <wchar.h>

/* el_set, el_get and history are variadic, which Swift cannot call: one function for each use. */

typedef char *(*parley_edit_prompt)(EditLine *);
typedef int (*parley_edit_reader)(EditLine *, wchar_t *);
typedef unsigned char (*parley_edit_function)(EditLine *, int);

static inline EditLine *parley_edit_open(
    const char *program, void *context, parley_edit_prompt prompt, parley_edit_reader reader,
    parley_edit_function complete) {
  EditLine *edit = el_init(program, stdin, stdout, stderr);
  if (edit == NULL) return NULL;
  el_set(edit, EL_CLIENTDATA, context);
  el_set(edit, EL_PROMPT, prompt);
  el_set(edit, EL_EDITOR, "emacs");
  el_set(edit, EL_SIGNAL, 0);
  el_set(edit, EL_GETCFN, reader);
  el_set(edit, EL_ADDFN, "parley-complete", "Complete a command", complete);
  el_set(edit, EL_BIND, "^I", "parley-complete", NULL);
  el_set(edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
  return edit;
}

static inline void *parley_edit_context(EditLine *edit) {
  void *context = NULL;
  el_get(edit, EL_CLIENTDATA, &context);
  return context;
}

static inline void parley_edit_redraw(EditLine *edit) { el_set(edit, EL_REFRESH); }

static inline History *parley_edit_history(EditLine *edit, int count_max) {
  History *lines = history_init();
  HistEvent event;
  if (lines == NULL) return NULL;
  history(lines, &event, H_SETSIZE, count_max);
  history(lines, &event, H_SETUNIQUE, 1);
  el_set(edit, EL_HIST, history, lines);
  return lines;
}

static inline void parley_edit_remember(History *lines, const char *line) {
  HistEvent event;
  history(lines, &event, H_ENTER, line);
}

#endif
