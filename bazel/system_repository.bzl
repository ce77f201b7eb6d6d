"""Repositories backed by what the Debian packages install."""

def _system_repository_impl(ctx):
    for path, target in ctx.attr.links.items():
        if not ctx.path(target).exists:
            fail("%s is missing: run ./bazelw, or `apt-get install %s`" % (target, ctx.attr.package))
        ctx.symlink(target, path)
    for label, path in ctx.attr.files.items():
        ctx.symlink(label, path)
    for package, targets in ctx.attr.packages.items():
        lines = ['package(default_visibility = ["//visibility:public"])\n']
        for target in targets:
            lines.append('cc_library(name = "%s", deps = ["//:%s"])\n' % (target, ctx.attr.packages_dep))
        ctx.file(package + "/BUILD.bazel", "\n".join(lines), executable = False)
    if ctx.attr.libraries:
        lines = ['package(default_visibility = ["//visibility:public"])\n']
        for target, linkopts in ctx.attr.libraries.items():
            lines.append('cc_library(name = "%s", linkopts = %r, deps = %r)\n' % (target, linkopts, ctx.attr.deps))
        ctx.file("BUILD.bazel", "\n".join(lines), executable = False)

# The headers of a system library need no `-I`, because they lie in /usr/include; what a target of
# such a repository adds is its `-l` options.
system_repository = repository_rule(
    implementation = _system_repository_impl,
    attrs = {
        "deps": attr.string_list(
            doc = "Targets that each of `libraries` depends on.",
        ),
        "files": attr.label_keyed_string_dict(
            doc = "Files of this project to place in the repository, with the path there.",
            allow_files = True,
        ),
        "libraries": attr.string_list_dict(
            doc = "Targets of the root package, with the linker options of each.",
        ),
        "links": attr.string_dict(
            doc = "Paths in the repository, with the absolute path that each is a link to.",
        ),
        "package": attr.string(doc = "The Debian package to install when a link dangles."),
        "packages": attr.string_list_dict(
            doc = "Further packages, with their targets; each depends on `packages_dep`.",
        ),
        "packages_dep": attr.string(doc = "A target of the root package."),
    },
    local = True,
)
