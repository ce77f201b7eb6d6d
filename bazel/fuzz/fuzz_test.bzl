"""A fuzz target that is also a regression test."""

def fuzz_test(name, srcs, corpus, deps = [], size = "small", tags = [], **kwargs):
    """A target with `LLVMFuzzerTestOneInput` and its seeds.

    As a test it runs over the seeds and deterministic corruptions of them. As
    `./bazelw run --config=fuzz //x:y_fuzz_test -- -max_total_time=60 DIR` it is a libFuzzer program,
    which as a test runs for 20 s from the seeds on.

    Args:
      name: ends in `_fuzz_test`.
      srcs: where `LLVMFuzzerTestOneInput` is.
      corpus: files, each one input; at least one.
      deps: as in cc_test.
      size: as in cc_test.
      tags: as in cc_test; "fuzz" is added.
      **kwargs: as in cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        args = select({
            # libFuzzer only runs the files it is given, and starts from those it is told of so.
            "@hawser//bazel/fuzz:fuzz": [
                "-max_total_time=20",
                "-seed_inputs=" + ",".join(["$(rootpath %s)" % label for label in corpus]),
            ],
            "//conditions:default": ["$(rootpaths %s)" % label for label in corpus],
        }),
        data = corpus,
        tags = ["fuzz"] + tags,
        deps = deps + ["@hawser//bazel/fuzz:driver"],
        **kwargs
    )
