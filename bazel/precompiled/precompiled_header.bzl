"""A header that gcc parses once and then loads as a memory image."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load(":cpp_compiler.bzl", "CPP_COMPILER_ATTRS", "cpp_compiler")

# In the place of a header NAME, gcc loads NAME.gch from the first folder of its search path that holds
# one which was made with the same options. libstdc++ brings an empty header of this name, so `-include
# ciso646` is harmless where the image is not in the search path or does not fit. The name must not be
# that of a header which gcc includes by itself before all others: gcc would look for the image then, when
# macros that the image expects are not defined yet, and refuse it.
_NAME = "ciso646"

def _precompiled_header_impl(ctx):
    compiler = cpp_compiler(ctx)
    image = ctx.actions.declare_file("%s/%s.gch" % (ctx.label.name, _NAME))
    variables = cc_common.create_compile_variables(
        feature_configuration = compiler.features,
        cc_toolchain = compiler.toolchain,
        source_file = ctx.file.header.path,
        output_file = image.path,
        # As --force_pic has it in .bazelrc.
        use_pic = True,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + [
            "-x",
            "c++-header",
            "-fplugin=" + ctx.file._plugin.path,
            "-Werror=unknown-pragmas",
        ],
    )
    ctx.actions.run(
        executable = compiler.path,
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = compiler.features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = compiler.features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([ctx.file.header, ctx.file._plugin] + ctx.files.includes, transitive = [compiler.toolchain.all_files]),
        outputs = [image],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling %s" % ctx.file.header.short_path,
    )

    # gcc searches the folders of -iquote before those of -I.
    folders = depset([image.dirname])
    context = cc_common.create_compilation_context(
        headers = depset([image]),
        quote_includes = folders if ctx.attr.first else depset(),
        includes = depset() if ctx.attr.first else folders,
    )
    return [DefaultInfo(files = depset([image])), CcInfo(compilation_context = context)]

precompiled_header = rule(
    doc = "Gives sources that depend on it the image of `header` under the name ciso646.",
    implementation = _precompiled_header_impl,
    attrs = dict(
        CPP_COMPILER_ATTRS,
        header = attr.label(
            doc = "Includes of headers in /usr/include, and of `includes`.",
            allow_single_file = [".h"],
            mandatory = True,
        ),
        includes = attr.label_list(
            doc = "Headers beside `header` that it includes.",
            allow_files = [".h"],
        ),
        first = attr.bool(
            doc = "A source that depends on several images loads the one that is first.",
        ),
        _plugin = attr.label(
            default = ":instantiate_templates",
            allow_single_file = [".so"],
        ),
    ),
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
