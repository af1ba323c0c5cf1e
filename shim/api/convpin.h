/* convpin from inside: changing which algorithm runs a convolution while the program runs, and asking what ran.
 *
 * For a program that is started with libconvpin.so preloaded. Link to nothing: look the functions up, and do without where
 * they are not there (LD_PRELOAD was not set):
 *
 *     const char *(*set_algo)(const char *, const char *) = dlsym(RTLD_DEFAULT, "convpin_set_algo");
 *     if (set_algo != NULL && set_algo("forward", "FFT_TILING") != NULL) ...
 *
 * What is set here comes before the environment's and the files' rules and holds for the whole process, since frameworks
 * run backward passes on threads of their own. A change takes effect at the next execution of each convolution, also of
 * plans that a framework has kept: another plan for the same graph runs in its place, on a workspace of convpin's where it
 * needs more than the program gives. Where that can't be, the program's own runs, and the log and convpin_problems say why:
 * while a stream is being captured, for one. Replays of CUDA graphs hold what was captured, and nothing changes that.
 *
 * All functions may be called from any thread. Texts are UTF-8. None of them ends the program or prints. */
#ifndef CONVPIN_H
#define CONVPIN_H

#ifdef __cplusplus
extern "C" {
#endif

#define CONVPIN_API extern

/* "0.1.0" */
CONVPIN_API const char *convpin_version(void);

/* Watches convolutions from now on, also where no setting asks for anything. All functions below do so too. Call it before
 * the first convolution: what the program built before (descriptors, graphs, plans) is unknown, and stays as it is. With
 * CONVPIN_DISABLE=1 nothing is watched. */
CONVPIN_API void convpin_enable(void);

/* Sets the algorithm of all convolutions of an operation: "forward", "backward_data", "backward_filter" (also fwd, dgrad,
 * wgrad), or "any". `text` is what CONV_FWD_ALGO takes: a number, a name, an engine tag (eng38, eng38_k2=1), several in
 * order of preference, separated by commas; -1 is the framework's choice, against the settings' rules too. It replaces what
 * was set for the operation. With "any", the operations that don't know the algorithm stay as they are.
 * NULL, or an error message, which is this thread's until its next call; then nothing has changed. */
CONVPIN_API const char *convpin_set_algo(const char *operation, const char *text);

/* Sets rules, as [[rule]] tables of a file (the line version = 1 may be left out). They come after convpin_set_algo's and
 * before the settings', and replace those of the call before. An empty text takes them away.
 * NULL, or an error message, as above: where it is, and what is allowed. */
CONVPIN_API const char *convpin_set_rules(const char *toml);

/* Takes away what convpin_set_algo set for the operation; NULL: that of all operations, and convpin_set_rules' rules. The
 * settings' rules are in force again, or the framework's own choice.
 * NULL, or an error message, as above. */
CONVPIN_API const char *convpin_clear(const char *operation);

/* From now on this thread runs the module `name`; NULL ends it. What runs then carries the label, in the log and in
 * convpin_problems (64 labels a problem at most), in warnings and NVTX ranges. */
CONVPIN_API void convpin_label(const char *name);

/* What was met so far, as a JSON array with an object for each convolution: `id`, `problem` (the text form), `api` ("graph",
 * "legacy"), `operation`, `operations` (the convolution and what is fused with it), `calls`, `choice` ("set", "unsupported",
 * "refused", "left_alone", or null before it ran or failed), `rule`, `requested`, `reason`, `ran` (objects with `what` and `calls`; the
 * latest is the first), `labels`, `device`, `cudnn`. To be given to convpin_free; NULL where memory is out. */
CONVPIN_API char *convpin_problems(void);
CONVPIN_API void convpin_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
