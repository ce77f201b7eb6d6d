"""Finds gcc's headers for plugins."""

def _gcc_plugin_headers_impl(ctx):
    gcc = ctx.which("gcc")
    if gcc == None:
        fail("gcc is missing: run ./bazelw, or `apt-get install g++`")
    include = ctx.execute([gcc, "-print-file-name=plugin"]).stdout.strip() + "/include"
    if not ctx.path(include).exists:
        fail(("%s is missing: run ./bazelw, or `apt-get install gcc-%s-plugin-dev`, or build with " +
              "--no@hawser//bazel/precompiled:enabled") %
             (include, ctx.execute([gcc, "-dumpversion"]).stdout.strip()))
    ctx.symlink(include, "include")
    ctx.file("BUILD.bazel", 'exports_files(["include"])\n', executable = False)

# `@gcc_plugin_headers//:include`, from the Debian package gcc-12-plugin-dev.
gcc_plugin_headers = repository_rule(
    implementation = _gcc_plugin_headers_impl,
    configure = True,
    local = True,
)
