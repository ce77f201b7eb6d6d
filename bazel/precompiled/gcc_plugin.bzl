"""A plugin of the gcc that compiles this workspace."""

load(":cpp_compiler.bzl", "CPP_COMPILER_ATTRS", "cpp_compiler")

def _gcc_plugin_impl(ctx):
    compiler = cpp_compiler(ctx)
    plugin = ctx.actions.declare_file(ctx.label.name + ".so")
    arguments = ctx.actions.args()
    arguments.add_all(["-O1", "-fPIC", "-shared", "-fno-rtti", "-Wall", "-Wextra", "-Werror"])
    arguments.add_all(ctx.files.headers_root, before_each = "-isystem")
    arguments.add(ctx.file.source)
    arguments.add("-o", plugin)
    ctx.actions.run(
        executable = compiler.path,
        arguments = [arguments],
        inputs = depset([ctx.file.source] + ctx.files.headers_root, transitive = [compiler.toolchain.all_files]),
        outputs = [plugin],
        mnemonic = "GccPlugin",
        # gcc looks for the linker in PATH.
        use_default_shell_env = True,
        progress_message = "Compiling the gcc plugin %s" % ctx.label.name,
    )
    return [DefaultInfo(files = depset([plugin]))]

gcc_plugin = rule(
    doc = "Compiles `source` into a plugin, NAME.so.",
    implementation = _gcc_plugin_impl,
    attrs = dict(
        CPP_COMPILER_ATTRS,
        source = attr.label(
            allow_single_file = [".cc"],
            mandatory = True,
        ),
        headers_root = attr.label(
            doc = "The folder of gcc's headers for plugins.",
            default = "@gcc_plugin_headers//:include",
            allow_files = True,
        ),
    ),
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
