"""Tests that run a simulation once for each of many seeds."""

def simulation_test(name, srcs, deps):
    """NAME_test, of 1,000 seeds, and NAME_nightly_test, of 20,000.

    Args:
      name: what is simulated, "cluster_simulation".
      srcs: the test, which calls RunSeeds (rpc/testing/simulation_seeds.h).
      deps: as of cc_test; GoogleTest and the seeds come by themselves.
    """
    for suffix, size, seeds, tags in [
        ("_test", "medium", 1000, []),
        ("_nightly_test", "enormous", 20000, ["nightly"]),
    ]:
        native.cc_test(
            name = name + suffix,
            size = size,
            srcs = srcs,
            local_defines = ["HAWSER_DEFAULT_SEEDS=%d" % seeds],
            tags = tags,
            deps = deps + [
                "//rpc/testing:simulation_seeds",
                "@com_google_googletest//:gtest_main",
            ],
        )
