"""Finds the CUDA toolkit."""

def _find_toolkit(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return home if ctx.path(home + "/bin/nvcc").exists else None

def _find_nccl(ctx, home):
    for header in [home + "/include/nccl.h", "/usr/include/nccl.h"]:
        if ctx.path(header).exists:
            return True
    return False

def _cuda_repository_impl(ctx):
    home = _find_toolkit(ctx)
    found = home != None
    if found:
        ctx.symlink(home + "/include", "include")
    ctx.template("BUILD.bazel", ctx.attr._build_file, executable = False)
    ctx.file("toolkit.bzl", "\n".join([
        '"""What was found of CUDA on this machine."""',
        "CUDA_HOME = %r" % (home or ""),
        "HAS_CUDA = %r" % found,
        "HAS_NCCL = %r" % (found and _find_nccl(ctx, home)),
        "",
    ]), executable = False)

# `@local_config_cuda//:cudart`, `:cublas` and `:nccl`, from $CUDA_HOME or /usr/local/cuda. Where
# there is no toolkit the repository still loads, and its targets are skipped as incompatible.
cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    attrs = {
        "_build_file": attr.label(
            default = "//bazel/cuda:toolkit.BUILD",
            allow_single_file = True,
        ),
    },
    configure = True,
    environ = ["CUDA_HOME"],
    local = True,
)
