"""Finds the CUDA toolkit."""

_TARGETS = ["cudart", "cublas", "nccl"]

def _absent(ctx):
    lines = ['package(default_visibility = ["//visibility:public"])\n']
    for target in _TARGETS:
        lines.append('cc_library(name = "%s", target_compatible_with = ["@platforms//:incompatible"])\n' % target)
    ctx.file("BUILD.bazel", "\n".join(lines), executable = False)

def _cuda_repository_impl(ctx):
    _absent(ctx)

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    environ = ["CUDA_HOME"],
    configure = True,
    local = True,
)
