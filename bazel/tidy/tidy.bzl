"""Runs clang-tidy over the sources of C++ targets: `./bazelw build --config=tidy //rpc/...`."""

def _tidy(ctx, source, context):
    stamp = ctx.actions.declare_file("%s.%s.tidy" % (ctx.rule.attr.name, source.basename))
    arguments = ctx.actions.args()
    # Tests are written to be read, not to be fast.
    checks = "-performance-*" if ctx.rule.attr.testonly else ""
    arguments.add_all([ctx.file._config, checks, stamp, source])
    arguments.add_all(ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts)
    arguments.add_all(context.defines, format_each = "-D%s")
    arguments.add_all(context.local_defines, format_each = "-D%s")
    arguments.add_all(context.quote_includes, before_each = "-iquote")
    arguments.add_all(context.includes, format_each = "-I%s")
    arguments.add_all(context.system_includes, before_each = "-isystem")
    arguments.add("-Wthread-safety")
    # The options of the build are gcc's.
    arguments.add_all([
        "-Wno-unknown-warning-option",
        "-Wno-unused-command-line-argument",
        "-ftrivial-auto-var-init=uninitialized",
    ])
    ctx.actions.run(
        executable = ctx.executable._run,
        inputs = depset([source, ctx.file._config], transitive = [context.headers]),
        outputs = [stamp],
        arguments = [arguments],
        env = {"PATH": "/usr/bin:/bin"},
        mnemonic = "ClangTidy",
        progress_message = "Checking %s" % source.short_path,
    )
    return stamp

def _tidy_aspect_impl(target, ctx):
    if CcInfo not in target or ctx.label.workspace_name or not hasattr(ctx.rule.attr, "srcs"):
        return []
    sources = [
        file
        for label in ctx.rule.attr.srcs
        for file in label.files.to_list()
        if file.is_source and file.extension == "cc" and not file.basename.endswith(".cu.cc")
    ]
    context = target[CcInfo].compilation_context
    return [OutputGroupInfo(tidy = depset([_tidy(ctx, source, context) for source in sources]))]

tidy_aspect = aspect(
    implementation = _tidy_aspect_impl,
    attrs = {
        "_config": attr.label(
            default = "//:.clang-tidy",
            allow_single_file = True,
        ),
        "_run": attr.label(
            default = "//bazel/tidy:run_clang_tidy.sh",
            allow_single_file = True,
            executable = True,
            cfg = "host",
        ),
    },
    fragments = ["cpp"],
)
