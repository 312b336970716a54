/* trace.h - libtagine's public interface: what a program of yours does when, as a file that Perfetto and
 * chrome://tracing open.
 *
 *   tagine_trace *trace;
 *   if (tagine_trace_start("photos.json.gz", &trace) != TAGINE_OK)
 *       fprintf(stderr, "%s\n", tagine_error());
 *   tagine_annotate_begin(trace, "resize");
 *   ...
 *   tagine_annotate_end(trace);
 *   ...
 *   tagine_trace_stop(trace);
 *
 * Nesting  An end belongs to the last begin of its thread; what is begun in between lies inside. Each thread has a row of
 *          its own. Deeper than 64 nothing is kept.
 * Names    Any bytes, copied; cut after 127.
 * Off      A NULL trace: begin and end return at once, so that they may stay in the program.
 * File     Chrome's trace events, gzip, in microseconds. It is whole after start, and written anew once a second, or where the
 *          disk is slow so that it takes a fiftieth of the time: a program that is killed leaves what it did. At most 50 MiB, beyond which annotations
 *          are counted and left out, which the file says.
 * Errors   TAGINE_MACHINE: memory, threads, disk; TAGINE_USAGE: NULL. begin and end cannot fail: what finds no memory is
 *          told by stop.
 * Threads  begin and end from any; start and stop from one, when no other annotates to this trace. An end takes a lock
 *          that all threads share, about 2 us, so annotate what takes longer.
 */
#ifndef TAGINE_TRACE_H
#define TAGINE_TRACE_H

#include <tagine/tagine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tagine_trace tagine_trace;

/* The folder of `path` has to be there. */
tagine_status tagine_trace_start(const char *path, tagine_trace **out);
/* Ends what is still open, writes the file, and frees the trace, also when it fails. Accepts NULL. */
tagine_status tagine_trace_stop(tagine_trace *trace);

void tagine_annotate_begin(tagine_trace *trace, const char *name);
void tagine_annotate_end(tagine_trace *trace);

#ifdef __cplusplus
}
#endif

#endif
