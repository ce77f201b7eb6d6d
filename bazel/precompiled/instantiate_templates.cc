// A plugin of gcc. `#pragma hawser instantiate_templates` instantiates the
// templates that the text above it uses.
//
// gcc does that at the end of a source. In a header that is precompiled, it
// would leave them to each source that loads the image: 1,800 functions for the
// headers of Abseil and protobuf, which take 0.3 s. clang has an option for it,
// -fpch-instantiate-templates.
// https://gcc.gnu.org/onlinedocs/gccint/Plugins.html
#include "gcc-plugin.h"
// After gcc-plugin.h, which defines what the others need.
#include "c-family/c-pragma.h"
#include "cp/cp-tree.h"
#include "plugin-version.h"

// gcc loads only plugins that say so.
int plugin_is_GPL_compatible;

namespace {

void InstantiateTemplates(cpp_reader* /*reader*/) {
  instantiate_pending_templates(/*retries=*/0);
}

void RegisterPragma(void* /*event*/, void* /*user*/) {
  c_register_pragma("hawser", "instantiate_templates", InstantiateTemplates);
}

}  // namespace

int plugin_init(plugin_name_args* plugin, plugin_gcc_version* version) {
  if (!plugin_default_version_check(version, &gcc_version)) return 1;
  register_callback(plugin->base_name, PLUGIN_PRAGMAS, RegisterPragma, nullptr);
  return 0;
}
