"""A fuzz target that is also a regression test."""

def fuzz_test(name, srcs, corpus = [], deps = [], size = "small", **kwargs):
    """A target with `LLVMFuzzerTestOneInput` and its seeds.

    As a test it runs over the seeds and deterministic corruptions of them. As
    `./bazelw run --config=fuzz //x:y_fuzz_test -- -max_total_time=60 DIR` it is a libFuzzer program.

    Args:
      name: ends in `_fuzz_test`.
      srcs: where `LLVMFuzzerTestOneInput` is.
      corpus: files, each one input.
      deps: as in cc_test.
      size: as in cc_test.
      **kwargs: as in cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        args = select({
            # libFuzzer takes folders as its corpus, and only runs the files it is given.
            "@hawser//bazel/fuzz:fuzz": ["-max_total_time=30"],
            "//conditions:default": ["$(rootpaths %s)" % label for label in corpus],
        }),
        data = corpus,
        deps = deps + ["@hawser//bazel/fuzz:driver"],
        **kwargs
    )
