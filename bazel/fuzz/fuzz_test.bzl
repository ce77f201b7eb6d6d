"""A fuzz target that is also a regression test."""

def fuzz_test(name, srcs, corpus, dictionary = None, fuzz_args = [], deps = [], size = "small", tags = [], **kwargs):
    """A target with `LLVMFuzzerTestOneInput` and its seeds.

    As a test it runs over the seeds and deterministic corruptions of them. As
    `./bazelw run --config=fuzz //x:y_fuzz_test -- -max_total_time=60 DIR` it is a libFuzzer program,
    which as a test runs for 20 s from the seeds on.

    Args:
      name: ends in `_fuzz_test`.
      srcs: where `LLVMFuzzerTestOneInput` is.
      corpus: files, each one input; at least one.
      dictionary: a file of words that libFuzzer puts into inputs, or None.
      fuzz_args: further options of libFuzzer. A target with threads or caches wants `-detect_leaks=0`, as
        libFuzzer would look for leaks after each input; they are then found at the end. One of which each
        input covers thousands of edges wants `-entropic=0`: that schedule would take more time than it.
      deps: as in cc_test.
      size: as in cc_test.
      tags: as in cc_test; "fuzz" is added.
      **kwargs: as in cc_test.
    """
    words = [dictionary] if dictionary else []
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        args = select({
            # libFuzzer only runs the files it is given, and starts from those it is told of so.
            "@hawser//bazel/fuzz:fuzz": [
                "-max_total_time=20",
                # More mutations of one input at once leave little of its structure.
                "-mutate_depth=2",
                # Each name takes a run of the symbolizer.
                "-print_funcs=0",
                "-seed_inputs=" + ",".join(["$(rootpath %s)" % label for label in corpus]),
            ] + ["-dict=$(rootpath %s)" % label for label in words] + fuzz_args,
            "//conditions:default": ["$(rootpaths %s)" % label for label in corpus],
        }),
        data = corpus + words,
        tags = ["fuzz"] + tags,
        deps = deps + ["@hawser//bazel/fuzz:driver"],
        **kwargs
    )
