"""Finds Open MPI."""

_INCLUDE = "/usr/lib/x86_64-linux-gnu/openmpi/include"

def _mpi_repository_impl(ctx):
    found = ctx.path(_INCLUDE + "/mpi.h").exists
    if found:
        ctx.symlink(_INCLUDE, "include")
    ctx.template("BUILD.bazel", ctx.attr._build_file, executable = False)
    ctx.file("library.bzl", "\n".join([
        '"""What was found of Open MPI on this machine."""',
        "HAS_MPI = %r" % found,
        "",
    ]), executable = False)

# `@openmpi//:mpi`, from the Debian package libopenmpi-dev. Where that is not installed the repository
# still loads, and its target is skipped as incompatible.
mpi_repository = repository_rule(
    implementation = _mpi_repository_impl,
    attrs = {
        "_build_file": attr.label(
            default = "//bazel/mpi:library.BUILD",
            allow_single_file = True,
        ),
    },
    configure = True,
    local = True,
)
