"""A plugin of the gcc that compiles this workspace."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _gcc_plugin_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    plugin = ctx.actions.declare_file(ctx.label.name + ".so")
    arguments = ctx.actions.args()
    arguments.add_all(["-O1", "-fPIC", "-shared", "-fno-rtti", "-Wall", "-Wextra", "-Werror"])
    arguments.add_all(ctx.files.headers_root, before_each = "-isystem")
    arguments.add(ctx.file.source)
    arguments.add("-o", plugin)
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = [arguments],
        inputs = depset([ctx.file.source] + ctx.files.headers_root, transitive = [toolchain.all_files]),
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
    attrs = {
        "source": attr.label(
            allow_single_file = [".cc"],
            mandatory = True,
        ),
        "headers_root": attr.label(
            doc = "The folder of gcc's headers for plugins.",
            default = "@gcc_plugin_headers//:include",
            allow_files = True,
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
