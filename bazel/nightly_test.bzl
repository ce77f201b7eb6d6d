"""Tests with a nightly form, which runs more of the same."""

def nightly_test(name, nightly_name, srcs, deps, size, nightly_size, nightly_shards = None, **kwargs):
    """Two tests of the same sources, which are compiled once.

    The sources choose their numbers with async::NightlyOr (async/testing/nightly.h).

    Args:
      name: the test of every run.
      nightly_name: the form with the tag nightly.
      srcs: as of cc_test.
      deps: as of cc_test, with GoogleTest; async/testing:nightly comes by itself.
      size: of the test of every run.
      nightly_size: of the nightly form.
      nightly_shards: shard_count of the nightly form; by default that of both.
      **kwargs: further attributes of both tests.
    """
    native.cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = srcs,
        visibility = ["//visibility:private"],
        deps = deps + ["//async/testing:nightly"],
        # Nothing refers to the cases: they register themselves.
        alwayslink = True,
    )
    native.cc_test(
        name = name,
        size = size,
        deps = [":" + name + "_cases"],
        **kwargs
    )
    if nightly_shards:
        kwargs["shard_count"] = nightly_shards
    native.cc_test(
        name = nightly_name,
        size = nightly_size,
        env = {"HAWSER_NIGHTLY": "1"},
        tags = ["nightly"],
        deps = [":" + name + "_cases"],
        **kwargs
    )

def simulation_test(name, srcs, deps):
    """NAME_test and NAME_nightly_test, which run a simulation once for each of many seeds.

    The shards of the nightly form run in parallel.

    Args:
      name: what is simulated, "cluster_simulation".
      srcs: the test, with suites of SeedsTest (rpc/testing/simulation_seeds.h).
      deps: as of cc_test; GoogleTest and the seeds come by themselves.
    """
    nightly_test(
        name = name + "_test",
        nightly_name = name + "_nightly_test",
        size = "medium",
        nightly_size = "enormous",
        nightly_shards = 25,
        srcs = srcs,
        deps = deps + [
            "//rpc/testing:simulation_seeds",
            "@com_google_googletest//:gtest_main",
        ],
    )
